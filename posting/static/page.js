// Where the service is, and how this page begins and ends.

/** The path of the service without a slash at its end: this module is at `/static/{digest}/`. */
export const root = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

/**
 * Call a function when all of the page is there, and all modules have run.
 * @param {() => void} start
 */
export function ready(start) {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else queueMicrotask(start);
}

/**
 * Go to a URL of this service, even if it differs from the present one in its fragment alone.
 * @param {string} url
 */
export function goTo(url) {
  const target = new URL(url, location.href);
  if (target.pathname + target.search !== location.pathname + location.search)
    return location.assign(target);
  history.replaceState(null, "", target);
  location.reload();
}
