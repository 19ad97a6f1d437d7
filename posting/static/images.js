// Images of a post: each is one `Upload`, which is sent once the post has an id.

import { isAnimated } from "./animations.js";
import { newKey, request, result } from "./api.js";
import { first } from "./dom.js";
import { root } from "./page.js";
import { Problem } from "./problem.js";
import { explainError } from "./words.js";

const MAX_SIDE = 2560; // pixels of a photo that is made smaller
const QUALITY = 0.85;
// What the service takes.
const MAX_PIXELS = 25_000_000;
const MAX_LENGTH = 16_384; // pixels on a side
const TIMEOUT = 300_000; // milliseconds
const PAUSE = 2000; // milliseconds before a second try
const UNSENT = `${root}/images/unsent-image-`;
const UNSENT_URL = new RegExp(`\\]\\((${UNSENT}[\\w-]{8})\\)`, "g");

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
    /** The URL by which a text shows the image until it is sent; it has the form of the later one. */
    this.draftUrl = UNSENT + this.key.slice(0, 8);
    Upload.#uploads.set(row, this);
  }

  /** Return the image that a row of the list shows. */
  static of(row) {
    return Upload.#uploads.get(row) ?? new Upload(row, null);
  }

  get alt() {
    return first(this.row, "input").value;
  }

  get url() {
    return this.id ? `${root}/images/${this.id}` : this.draftUrl;
  }

  /** The URL by which this page shows the image. */
  get shownUrl() {
    return first(this.row, "img").src;
  }

  get isSent() {
    return this.id !== null && this.sentAlt === this.alt;
  }

  /** The image in Markdown. */
  get markdown() {
    return `![${this.alt.replace(/[[\]\\]/g, "\\$&")}](${this.url})`;
  }

  /**
   * Return a text that shows the image by its present URL, and with its description if it had none.
   * @param {string} text
   */
  update(text) {
    return text
      .replaceAll(`![](${this.draftUrl})`, () => this.markdown)
      .replaceAll(`](${this.draftUrl})`, () => `](${this.url})`);
  }

  /**
   * Return a text without the image.
   * @param {string} text
   */
  removeFrom(text) {
    return text.replace(new RegExp(`!\\[(\\\\.|[^\\]\\\\])*\\]\\(${this.url}\\)\\n*`, "g"), "");
  }

  /** @param {Problem} problem */
  showProblem(problem) {
    const [error] = problem.errors;
    const text = error ? explainError(error) : problem.message;
    first(this.row, ".problem").textContent = text;
  }

  /**
   * Send the image, or its description if only that has changed.
   * @param {string} post the id of its post
   */
  async send(post) {
    if (this.isSent) return;
    first(this.row, ".problem").replaceChildren();
    const { alt } = this;
    const body = { alt: alt || null };
    if (this.id) await request("PATCH", `${root}/images/${this.id}`, { body });
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
    this.id = data.id;
  }

  async remove() {
    if (this.id) await request("DELETE", `${root}/images/${this.id}`);
    this.row.remove();
  }
}

/**
 * Return whether a text shows an unsent image that is not among those of the page.
 * @param {string} text
 * @param {Upload[]} uploads
 */
export function hasLostImage(text, uploads) {
  const kept = new Set(uploads.map(({ draftUrl }) => draftUrl));
  return [...text.matchAll(UNSENT_URL)].some(([, url]) => !kept.has(url));
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
      upload.showProblem(problem);
    }
  }
  if (failure) {
    const message = "Your post is published, but some images are not. Try again, or remove them.";
    throw new Problem(failure.status === 401 ? 401 : 0, message);
  }
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
    const isLarge =
      size > maxBytes || width * height > MAX_PIXELS || Math.max(width, height) > MAX_LENGTH;
    if (!isLarge && types.includes(type)) return file;
    if (isAnimated(new Uint8Array(await file.arrayBuffer()))) {
      if (!isLarge)
        throw new Problem(0, `${name} is an animation. Save it as GIF or WebP, and add it again.`);
      const cause = size > maxBytes ? `is larger than ${limit}` : "has too many pixels";
      throw new Problem(0, `${name} ${cause}. Make the animation smaller.`);
    }
    const small = await shrink(picture);
    if (!small || small.size > maxBytes)
      throw new Problem(0, `${name} is larger than ${limit}. Make it smaller, and add it again.`);
    return small;
  } finally {
    picture.close();
  }
}

/**
 * Return a JPEG, or what keeps transparency: a WebP, or a PNG where the browser writes no WebP.
 * @param {ImageBitmap} picture
 * @returns {Promise<Blob | null>}
 */
async function shrink(picture) {
  const scale = Math.min(1, MAX_SIDE / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(picture.width * scale);
  canvas.height = Math.ceil(picture.height * scale);
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const isOpaque = data.every((value, place) => place % 4 < 3 || value === 255);
  const type = isOpaque ? "image/jpeg" : "image/webp";
  return new Promise((done) => canvas.toBlob(done, type, QUALITY));
}
