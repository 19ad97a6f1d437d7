// Images of a post: each is one `Upload`, which is sent once the post has an id.

import { newKey, Problem, request, result } from "./api.js";
import { first } from "./dom.js";
import { root } from "./page.js";

const MAX_SIDE = 2560; // pixels of a photo that is made smaller
const QUALITY = 0.85;
const TIMEOUT = 300_000; // milliseconds
const PAUSE = 2000; // milliseconds before a second try

/** An image of the post in the editor, perhaps one that is not sent yet. */
export class Upload {
  /** @type {WeakMap<Element, Upload>} by their rows */
  static #uploads = new WeakMap();

  /**
   * @param {HTMLElement} row the list item that shows the image
   * @param {Blob | null} file null if the post has the image already
   */
  constructor(row, file) {
    this.row = row;
    this.file = file;
    this.id = row.dataset.image ?? null;
    this.sentAlt = this.id && this.alt;
    this.key = newKey();
    Upload.#uploads.set(row, this);
  }

  /** Return the image that a row of the list shows. */
  static of(row) {
    return Upload.#uploads.get(row) ?? new Upload(row, null);
  }

  get alt() {
    return first(this.row, "input").value;
  }

  get isSent() {
    return this.id !== null && this.sentAlt === this.alt;
  }

  showProblem(text) {
    first(this.row, ".problem").textContent = text;
  }

  /**
   * Send the image, or its description if only that has changed.
   * @param {string} post the id of its post
   */
  async send(post) {
    if (this.isSent) return;
    const { alt } = this;
    if (this.id)
      await request("PATCH", `${root}/images/${this.id}`, { body: { alt: alt || null } });
    else await this.#sendFile(post, alt);
    this.sentAlt = alt;
  }

  async #sendFile(post, alt) {
    if (this.sentAlt !== null && this.sentAlt !== alt) this.key = newKey(); // another request
    this.sentAlt = alt;
    const body = new FormData();
    body.append("file", this.file);
    if (alt) body.append("alt", alt);
    const progress = first(this.row, "progress");
    progress.hidden = false;
    const send = () =>
      sendForm(`${root}/posts/${post}/images`, body, this.key, (part) => {
        progress.value = part;
      });
    const { data } = await send().catch((problem) => {
      // Once more with the same key if the connection or the service failed.
      if (problem.status !== 0 && problem.status !== 503) throw problem;
      return new Promise((wait) => setTimeout(wait, PAUSE)).then(send);
    });
    progress.hidden = true;
    this.id = this.row.dataset.image = data.id;
  }

  async remove() {
    if (this.id) await request("DELETE", `${root}/images/${this.id}`);
    this.row.remove();
  }
}

/** Send a form with a file. XMLHttpRequest, because fetch does not report the progress of an upload. */
async function sendForm(url, body, key, onProgress) {
  const sender = new XMLHttpRequest();
  sender.open("POST", url);
  sender.setRequestHeader("Idempotency-Key", key);
  sender.timeout = TIMEOUT;
  sender.upload.onprogress = (event) => onProgress(event.loaded / event.total);
  await new Promise((done) => {
    sender.onloadend = done;
    sender.send(body);
  });
  return result(sender.status, sender.responseText, sender.getResponseHeader("ETag"));
}

/**
 * Send all images, and throw a `Problem` if some could not be sent.
 * @param {Upload[]} uploads
 * @param {string} post
 */
export async function sendImages(uploads, post) {
  let failure = null;
  for (const upload of uploads) {
    try {
      await upload.send(post);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      failure = problem;
      upload.showProblem(problem.errors[0]?.detail ?? problem.message);
    }
  }
  if (failure) {
    const detail = "The post is saved, but some images are not. Try again, or remove them.";
    throw new Problem(failure.status === 401 ? 401 : 0, { detail });
  }
}

/**
 * Return a picture, such as the photo of a phone, as a smaller JPEG; null if that is not possible.
 * @param {File} file
 * @returns {Promise<Blob | null>}
 */
export async function shrink(file) {
  if (file.type === "image/gif") return null; // it would stand still
  try {
    const picture = await createImageBitmap(file);
    const scale = Math.min(1, MAX_SIDE / Math.max(picture.width, picture.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(picture.width * scale);
    canvas.height = Math.ceil(picture.height * scale);
    const context = canvas.getContext("2d");
    context.fillStyle = "white"; // JPEG has no transparency
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/jpeg", QUALITY));
  } catch {
    return null;
  }
}
