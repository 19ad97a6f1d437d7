// Requests to the API.

import { Problem } from "./problem.js";
import { explainProblem } from "./words.js";

const TIMEOUT = 30_000; // milliseconds

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
  let response;
  let text = "";
  try {
    response = await fetch(url, options);
    text = await response.text();
  } catch {
    response = null; // there is none, or it ends too early
  }
  const found = result(response?.status ?? 0, text, response?.headers.get("ETag"), task);
  return { ...found, next: nextOf(response?.headers.get("Link")) };
}

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
 * Return the version that an ETag names. A proxy that compresses makes it weak.
 * @param {string} etag
 */
export const versionOf = (etag) => /"(\d+)/.exec(etag)[1];
