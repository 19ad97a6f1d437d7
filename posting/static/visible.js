// Pages that nobody looks at, such as a tab that was opened beside another one.

/**
 * Call a function when somebody looks at the page.
 * @param {() => void} action
 */
export function whenVisible(action) {
  if (document.visibilityState === "visible") return action();
  document.addEventListener("visibilitychange", () => whenVisible(action), { once: true });
}
