// Images of a form: they are described and turned, and made smaller before they are sent.

import { isAnimated } from "./animations.js";
import { request } from "./api.js";
import { first } from "./dom.js";
import { gettext } from "./language.js";
import { root } from "./page.js";
import { Problem } from "./problem.js";
import { Upload } from "./uploads.js";

const MAX_SIDE = 2560; // pixels of a photo
const QUALITY = 0.85;
const PHOTOS = ["image/jpeg", "image/webp"]; // drawings and screenshots are in other formats
// What the service takes.
const MAX_PIXELS = 25_000_000;
const MAX_LENGTH = 16_384; // pixels on a side

/** An image in the list of a form. */
export class Picture extends Upload {
  kind = "images";
  thing = "image";
  /** Whether it goes into the text once it is sent. */
  isForText = false;
  /** @type {string | null} the id that it had before it was turned */
  former = null;

  constructor(row, file) {
    super(row, file);
    this.sentAlt = this.alt;
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

  get fields() {
    return this.alt ? { alt: this.alt } : {};
  }

  noteSent({ alt = "" }) {
    this.sentAlt = alt;
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
    this.forget(this.former);
    this.former = null;
  }

  remove() {
    super.remove();
    if (this.former !== null) this.forget(this.former);
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
  const values = { name, limit: Math.floor(maxBytes / 2 ** 20) };
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch {
    throw new Problem(
      0,
      gettext(
        "%(name)s is not an image that your browser can read. Save it as JPEG or PNG, and add it again.",
        values,
      ),
    );
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
        throw new Problem(
          0,
          gettext("%(name)s is an animation. Save it as GIF or WebP, and add it again.", values),
        );
      if (size > maxBytes)
        throw new Problem(
          0,
          gettext("%(name)s is larger than %(limit)s MB. Make the animation smaller.", values),
        );
      throw new Problem(
        0,
        gettext("%(name)s has too many pixels. Make the animation smaller.", values),
      );
    }
    const small = await shrink(picture, type === "image/jpeg");
    if (isTaken && (!small || small.size >= size)) return file;
    if (!small || small.size > maxBytes)
      throw new Problem(
        0,
        gettext("%(name)s is larger than %(limit)s MB. Make it smaller, and add it again.", values),
      );
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
