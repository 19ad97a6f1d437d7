// Requests to the API.

// What to tell people where the API speaks to programs, by the code of a problem.
const WORDS = {
  not_signed_in: "You are signed out.",
  still_under_way: "It is still being sent. Wait a moment, and try again.",
  stale_version: "It has been changed since you opened it.",
};
const OFFLINE = "There is no connection. What you wrote is kept; try again.";
const TIMEOUT = 30_000; // milliseconds

/** A request that failed, with the details of RFC 9457. */
export class Problem extends Error {
  /**
   * @param {number} status 0 if there was no response
   * @param {{detail?: string, errors?: {pointer?: string, detail: string}[]}} [details]
   */
  constructor(status, details = {}) {
    super(details.detail ?? "Something went wrong. Try again.");
    this.status = status;
    this.errors = details.errors ?? [];
  }
}

/**
 * Send a request. Return the data of the response and its ETag, or throw a `Problem`.
 * @param {string} method
 * @param {string} url
 * @param {{body?: object, headers?: Record<string, string>}} [options]
 */
export async function request(method, url, { body, headers = {} } = {}) {
  /** @type {RequestInit} */
  const options = { method, headers, signal: AbortSignal.timeout(TIMEOUT) };
  if (body) {
    options.headers = { ...headers, "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  let text;
  try {
    response = await fetch(url, options);
    text = await response.text();
  } catch {
    return result(0, "", null);
  }
  return result(response.status, text, response.headers.get("ETag"));
}

/**
 * Return the data of a response and its ETag, or throw a `Problem`.
 * @param {number} status
 * @param {string} text
 * @param {string | null} etag
 */
export function result(status, text, etag) {
  let data = null;
  try {
    data = JSON.parse(text);
  } catch {
    // An empty response, or one that did not come from the service.
  }
  if (data?.code === "not_signed_in") document.dispatchEvent(new Event("signed-out"));
  if (status >= 200 && status < 300) return { data, etag };
  const detail = status === 0 ? OFFLINE : (WORDS[data?.code] ?? data?.detail);
  throw new Problem(status, { detail, errors: data?.errors });
}

/** Return a new Idempotency-Key. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Return the version that an ETag names. A proxy that compresses makes it weak.
 * @param {string} etag
 */
export const versionOf = (etag) => /"(\d+)/.exec(etag)[1];
