// Images of a form: each is one `Upload`, which is sent while the text is being written.

import { isAnimated } from "./animations.js";
import { newKey, request, result } from "./api.js";
import { first } from "./dom.js";
import { root } from "./page.js";
import { Problem, problemOf } from "./problem.js";
import { explainError } from "./words.js";

const MAX_SIDE = 2560; // pixels of a photo
const QUALITY = 0.85;
const PHOTOS = ["image/jpeg", "image/webp"]; // drawings and screenshots are in other formats
// What the service takes.
const MAX_PIXELS = 25_000_000;
const MAX_LENGTH = 16_384; // pixels on a side
const TIMEOUT = 300_000; // milliseconds
const PAUSE = 2000; // milliseconds before a second try

/** Fulfilled when the images before have been sent: the service takes one after the other. */
let sent = Promise.resolve();

/** An image in the list of a form. */
export class Upload {
  /** @type {WeakMap<Element, Upload>} by their rows */
  static #uploads = new WeakMap();

  /**
   * @param {HTMLElement} row the list item that shows the image
   * @param {Blob | null} file null if the service has the image already
   */
  constructor(row, file) {
    this.row = row;
    this.file = file;
    this.id = row.dataset.image ?? null;
    this.sentAlt = this.alt;
    /** Whether it goes into the text once it is sent. */
    this.isForText = false;
    this.isRemoved = false;
    /** @type {string | null} the id that it had before it was turned */
    this.former = null;
    /** Fulfilled when the image is sent or could not be sent. */
    this.sending = Promise.resolve();
    /** @type {Problem | null} why it could not be sent */
    this.problem = null;
    Upload.#uploads.set(row, this);
  }

  /** Return the image that a row of a list shows. */
  static of(row) {
    return Upload.#uploads.get(row) ?? new Upload(row, null);
  }

  get alt() {
    return first(this.row, "input").value;
  }

  get url() {
    return urlOf(this.id);
  }

  /** The URL by which this page shows the image. */
  get shownUrl() {
    return first(this.row, "img").src;
  }

  /** The image in Markdown. */
  get markdown() {
    return `![${this.alt.replace(/[[\]\\]/g, "\\$&")}](${this.url})`;
  }

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
    const { alt, file } = this;
    const key = newKey();
    const body = new FormData();
    body.append("file", file);
    if (alt) body.append("alt", alt);
    const progress = first(this.row, "progress");
    progress.hidden = false;
    const send = () =>
      sendForm(`${root}/images`, body, key, (part) => {
        progress.value = part;
      });
    try {
      const { data } = await send().catch((problem) => {
        // Once more with the same key if the connection or the service failed.
        if (problem.status !== 0 && problem.status !== 503) throw problem;
        return new Promise((wait) => setTimeout(wait, PAUSE)).then(send);
      });
      if (this.isRemoved || file !== this.file) return forget(data.id);
      this.id = data.id;
      this.sentAlt = alt;
    } finally {
      progress.hidden = true;
    }
  }

  /** Send the description if it has changed. */
  async describe() {
    const { alt } = this;
    if (this.id === null || alt === this.sentAlt) return;
    await request("PATCH", this.url, { body: { alt: alt || null } });
    this.sentAlt = alt;
  }

  /** Turn the image to the right. It must be sent again. */
  async turn() {
    const picture = await createImageBitmap(this.file);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.height, picture.width];
    const context = canvas.getContext("2d");
    context.translate(canvas.width, 0);
    context.rotate(Math.PI / 2);
    context.drawImage(picture, 0, 0);
    picture.close();
    const type = this.file.type === "image/jpeg" ? "image/jpeg" : "image/webp";
    this.file = await new Promise((done) => canvas.toBlob(done, type, QUALITY));
    const image = first(this.row, "img");
    URL.revokeObjectURL(image.src);
    image.src = URL.createObjectURL(this.file);
    this.former ??= this.id;
    this.id = null;
  }

  /** Let the service delete the image as it was before it was turned. */
  forgetFormer() {
    forget(this.former);
    this.former = null;
  }

  /** Let the service delete the image if no text has it yet. */
  remove() {
    this.isRemoved = true;
    for (const id of [this.id, this.former]) if (this.file !== null && id !== null) forget(id);
  }
}

/** Return the URL by which a text shows an image. */
export const urlOf = (id) => `${root}/images/${id}`;

/**
 * Return a text without an image.
 * @param {string} text
 * @param {string} id
 */
export const removeFrom = (text, id) =>
  text.replace(new RegExp(`!\\[(\\\\.|[^\\]\\\\])*\\]\\(${urlOf(id)}\\)\\n*`, "g"), "");

/** Delete an image that no text has. If this fails, the service does so after a day. */
function forget(id) {
  request("DELETE", `${root}/users/me/images/${id}`).catch(() => null);
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
  return result(sender.status, sender.responseText, sender.getResponseHeader("ETag"), "image");
}

/**
 * Return a picture that the service can take: the file, or a smaller copy of a still image. Throw a
 * `Problem` that says what to do.
 * @param {File} file
 * @param {number} maxBytes
 * @param {string[]} types that the service takes
 * @returns {Promise<Blob>}
 */
export async function prepareImage(file, maxBytes, types) {
  const { name, size, type } = file;
  const limit = `${Math.floor(maxBytes / 2 ** 20)} MB`;
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch {
    const text = `${name} is not an image that your browser can read. Save it as JPEG or PNG, and add it again.`;
    throw new Problem(0, text);
  }
  try {
    const { width, height } = picture;
    const side = Math.max(width, height);
    const isTooLarge = size > maxBytes || width * height > MAX_PIXELS || side > MAX_LENGTH;
    const isTaken = !isTooLarge && types.includes(type);
    // A long picture, such as one of a whole page, could not be read any more.
    const isPhoto = PHOTOS.includes(type) && side <= 3 * Math.min(width, height);
    if (isTaken && (side <= MAX_SIDE || !isPhoto)) return file;
    if (isAnimated(new Uint8Array(await file.arrayBuffer()))) {
      if (isTaken) return file;
      if (!isTooLarge)
        throw new Problem(0, `${name} is an animation. Save it as GIF or WebP, and add it again.`);
      const cause = size > maxBytes ? `is larger than ${limit}` : "has too many pixels";
      throw new Problem(0, `${name} ${cause}. Make the animation smaller.`);
    }
    const small = await shrink(picture, type === "image/jpeg");
    if (isTaken && (!small || small.size >= size)) return file;
    if (!small || small.size > maxBytes)
      throw new Problem(0, `${name} is larger than ${limit}. Make it smaller, and add it again.`);
    return small;
  } finally {
    picture.close();
  }
}

/**
 * Return a JPEG, or what keeps transparency: a WebP, or a PNG where the browser writes no WebP. The
 * browser encodes it beside the main thread.
 * @param {ImageBitmap} picture
 * @param {boolean} isOpaque whether this is known
 * @returns {Promise<Blob | null>}
 */
async function shrink(picture, isOpaque) {
  const scale = Math.min(1, MAX_SIDE / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(picture.width * scale);
  canvas.height = Math.ceil(picture.height * scale);
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const type = isOpaque || hasNoTransparency(context) ? "image/jpeg" : "image/webp";
  return new Promise((done) => canvas.toBlob(done, type, QUALITY));
}

/** @param {CanvasRenderingContext2D} context */
function hasNoTransparency(context) {
  const { width, height } = context.canvas;
  const { data } = context.getImageData(0, 0, width, height);
  return data.every((value, place) => place % 4 < 3 || value === 255);
}
