// Waiting until somebody looks at the page, such as one that was opened in the background.

/**
 * Call a function when somebody looks at the page.
 * @param {() => void} action
 */
export function whenVisible(action) {
  if (document.visibilityState === "visible") return action();
  document.addEventListener("visibilitychange", () => whenVisible(action), { once: true });
}
