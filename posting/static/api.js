// Requests to the API.

import { Problem } from "./problem.js";
import { explainProblem } from "./words.js";

const TIMEOUT = 30_000; // milliseconds
const TRIES = 5; // of a request that finds too many others hashing passwords

/** @typedef {"write" | "delete" | "image" | "other"} Task */

/**
 * Send a request. Return the data of the response, its ETag, and the URL of the next page of a
 * list. Or throw a `Problem`. With `keepalive`, it is sent even if the reader leaves the page.
 * @param {string} method
 * @param {string} url
 * @param {{body?: object, headers?: Record<string, string>, task?: Task, keepalive?: boolean}}
 *   [options]
 */
export async function request(
  method,
  url,
  { body, headers = {}, task = taskOf(method), keepalive = false } = {},
) {
  /** @type {RequestInit} */
  const options = { method, headers, keepalive, signal: AbortSignal.timeout(TIMEOUT) };
  if (body) {
    options.headers = { ...headers, "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let { response, text } = await send(url, options);
  for (let tries = 1; tries < TRIES && isBusy(response, text); tries++) {
    const seconds = Number(response.headers.get("Retry-After"));
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    ({ response, text } = await send(url, options));
  }
  const found = result(response?.status ?? 0, text, response?.headers.get("ETag"), task);
  return { ...found, next: nextOf(response?.headers.get("Link")) };
}

/**
 * Send a request. Return the response, or null if there is none or it ends too early.
 * @param {string} url
 * @param {RequestInit} options
 */
async function send(url, options) {
  try {
    const response = await fetch(url, options);
    return { response, text: await response.text() };
  } catch {
    return { response: null, text: "" };
  }
}

/** @type {(response: Response | null, text: string) => boolean} */
const isBusy = (response, text) => response?.status === 503 && text.includes('"code":"busy"');

/** @type {(method: string) => Task} */
const taskOf = (method) => (method === "DELETE" ? "delete" : "other");

/**
 * Return the data of a response and its ETag, or throw a `Problem`.
 * @param {number} status 0 if there was no response
 * @param {string} text
 * @param {string | null | undefined} etag
 * @param {Task} [task]
 */
export function result(status, text, etag, task = "other") {
  let data = null;
  try {
    data = JSON.parse(text);
  } catch {
    // An empty response, or one that did not come from the service.
  }
  if (data?.code === "not_signed_in") document.dispatchEvent(new Event("signed-out"));
  if (status >= 200 && status < 300) return { data, etag };
  const message = explainProblem(status === 0 ? null : (data ?? {}), task);
  throw new Problem(status, message, data?.errors);
}

/**
 * Return the path and the query of the next page that a header `Link` names, or null.
 * @param {string | null} [link]
 */
export function nextOf(link) {
  const url = /<([^>]*)>; rel="next"/.exec(link ?? "")?.[1];
  if (!url) return null;
  const { pathname, search } = new URL(url);
  return pathname + search;
}

/** Return a new Idempotency-Key. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Return an ETag without its quotes. A proxy that compresses makes it weak.
 * @param {string} etag
 */
export const tagOf = (etag) => /"(.*)"/.exec(etag)[1];

/**
 * Return the version that an ETag names. A proxy that compresses makes it weak.
 * @param {string} etag
 */
export const versionOf = (etag) => /"(\d+)/.exec(etag)[1];
