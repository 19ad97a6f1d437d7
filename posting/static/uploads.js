// Files of a form: each is one `Upload`, which is sent while the text is being written.

import { newKey, request, result } from "./api.js";
import { first } from "./dom.js";
import { root } from "./page.js";
import { problemOf } from "./problem.js";
import { explainError } from "./words.js";

/** @typedef {import("./problem.js").Problem} Problem */

const TIMEOUT = 300_000; // milliseconds
const PAUSE = 2000; // milliseconds before a second try

/** Fulfilled when the files before have been sent: the service takes one image after the other. */
let sent = Promise.resolve();

/** @type {WeakMap<Element, Upload>} by their rows */
const uploads = new WeakMap();

/** Return the upload that a row of a list shows, if it has one. */
export const uploadIn = (row) => uploads.get(row);

/** A file in the list of a form. */
export class Upload {
  /** The collection of the service that has such files. */
  kind = "files";
  /** What it is, in a word. */
  thing = "file";
  isRemoved = false;
  /** Fulfilled when the file is sent or could not be sent. */
  sending = Promise.resolve();
  /** @type {Problem | null} why it could not be sent */
  problem = null;

  /**
   * @param {HTMLElement} row the list item that shows the file
   * @param {Blob | null} file null if the service has the file already
   */
  constructor(row, file) {
    this.row = row;
    this.file = file;
    this.id = row.dataset.id ?? null;
    uploads.set(row, this);
  }

  /** What is sent together with the file. */
  get fields() {
    return {};
  }

  /** Note that the service has the file with these fields. */
  noteSent(_fields) {}

  /** Begin to send the file, after those before it. */
  start() {
    this.problem = null;
    first(this.row, ".problem").replaceChildren();
    const { file } = this;
    this.sending = sent = sent.then(async () => {
      if (this.isRemoved || file !== this.file) return; // it was turned
      try {
        await this.#send();
      } catch (error) {
        this.problem = problemOf(error);
        const [reason] = this.problem.errors;
        const text = reason ? explainError(reason) : this.problem.message;
        first(this.row, ".problem").textContent = text;
      }
    });
    return this.sending;
  }

  async #send() {
    const { fields, file } = this;
    const key = newKey();
    const body = new FormData();
    for (const [name, value] of Object.entries({ file, ...fields })) body.append(name, value);
    const progress = first(this.row, "progress");
    progress.hidden = false;
    const send = () =>
      sendForm(`${root}/${this.kind}`, body, key, this.thing, (part) => {
        progress.value = part;
      });
    try {
      const { data } = await send().catch((problem) => {
        // Once more with the same key if the connection or the service failed.
        if (problem.status !== 0 && problem.status !== 503) throw problem;
        return new Promise((wait) => setTimeout(wait, PAUSE)).then(send);
      });
      if (this.isRemoved || file !== this.file) return this.forget(data.id);
      this.id = data.id;
      this.noteSent(fields);
    } finally {
      progress.hidden = true;
    }
  }

  /** Let the service delete the file if no text has it yet. */
  remove() {
    this.isRemoved = true;
    if (this.file !== null && this.id !== null) this.forget(this.id);
  }

  /** Delete a file that no text has. If this fails, the service does so after a day. */
  forget(id) {
    request("DELETE", `${root}/users/me/${this.kind}/${id}`).catch(() => null);
  }
}

/** Send a form with a file. XMLHttpRequest, because fetch does not report the progress of an upload. */
async function sendForm(url, body, key, task, onProgress) {
  const sender = new XMLHttpRequest();
  sender.open("POST", url);
  sender.setRequestHeader("Idempotency-Key", key);
  sender.timeout = TIMEOUT;
  sender.upload.onprogress = (event) => onProgress(event.loaded / event.total);
  await new Promise((done) => {
    sender.onloadend = done;
    sender.send(body);
  });
  return result(sender.status, sender.responseText, sender.getResponseHeader("ETag"), task);
}
