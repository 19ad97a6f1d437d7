// Where the service is, and how this page ends.

/** The path of the service without a slash at its end: this module is at `/static/{digest}/`. */
export const root = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

/**
 * Call a function when all of the page is there.
 * @param {() => void} start
 */
export function ready(start) {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
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

/** Return where to go after sign-in: the `next` of the query if it is a path of this service. */
export function nextUrl() {
  const front = `${location.origin}${root}/`;
  try {
    const next = new URL(new URLSearchParams(location.search).get("next") ?? "", front);
    return next.href.startsWith(front) ? next.href : front;
  } catch {
    return front;
  }
}
