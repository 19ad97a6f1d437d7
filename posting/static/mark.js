// Mark the page by the role of its reader before it is painted; `account.js` does so later on.

try {
  const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
  const root = new URL("../..", src).pathname.replace(/\/$/, "");
  document.documentElement.dataset.role = JSON.parse(localStorage[`posting:${root}:me`]).role;
} catch {
  // Nobody is signed in.
}
