// Buttons that send a request: `data-api` and `data-url`, after the question of `data-confirm`.

import { request } from "./api.js";

/**
 * Send the request of a button, if the reader confirms it. Return whether it was sent.
 * @param {HTMLElement} button
 */
export async function sendRequest({ dataset }) {
  if (dataset.confirm && !confirm(dataset.confirm)) return false;
  await request(dataset.api, dataset.url);
  return true;
}
