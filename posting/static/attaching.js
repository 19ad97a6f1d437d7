// The images of a text: added, described, turned, put in order and removed. They are sent while the
// text is written. The field `images` of a form has their ids, so that a draft keeps them.

import { onAction } from "./actions.js";
import { isAnimated } from "./animations.js";
import { request } from "./api.js";
import { all, copyOf, first, onEvent } from "./dom.js";
import { formOfDraft, keepDraft } from "./drafts.js";
import { prepareImage, removeFrom, Upload, urlOf } from "./images.js";
import { addBlock } from "./marks.js";
import { ready, root } from "./page.js";
import { Problem, problemOf } from "./problem.js";
import { say } from "./status.js";
import { changeText, onPreview } from "./text.js";
import { typeText } from "./typing.js";
import { count } from "./words.js";

const FORMER = `](${root}/images/unsent-image-`; // in drafts of an earlier version

/** @type {Map<string, Upload>} the images that forms of this page have had, by their ids */
const known = new Map();
/** Fulfilled when the images that were added are in their list. */
let added = Promise.resolve();
/** Whether the images that are being chosen are for the text. */
let isForText = false;

/** @param {any} form */
const uploadsOf = (form) => all(form, "[data-images] > li").map(Upload.of);
const uploadOf = (button) => Upload.of(button.closest("[data-images] > li"));
const fieldOf = (form) => form.elements.images;
const idsIn = (text) => text?.split(" ").filter(Boolean) ?? [];

/**
 * Return the body of a request, in which `images` is a list. An edit sends it only if it has changed,
 * since it is the whole list: it would delete images that were added elsewhere.
 * @param {Record<string, string | null>} values
 * @param {any} form
 */
export function withImages({ images, ...texts }, form) {
  const { defaultValue, value } = fieldOf(form);
  const isSame = form.dataset.api === "PATCH" && value === defaultValue;
  return isSame ? texts : { ...texts, images: idsIn(images) };
}

/** @param {any} form */
export const hasUnsentImages = (form) => uploadsOf(form).some(({ id }) => id === null);

/**
 * Wait until the images of a form and their descriptions are sent. Throw a `Problem` if some could
 * not be sent, so that the text waits for them.
 * @param {any} form
 */
export async function finishImages(form) {
  await added;
  const uploads = uploadsOf(form);
  const button = first(form, "button:not([type=button])");
  for (const [index, upload] of uploads.entries()) {
    if (upload.id !== null) continue;
    const label = button.textContent;
    button.textContent = `Sending image ${index + 1} of ${uploads.length} …`;
    await (upload.problem ? send(form, upload) : upload.sending);
    button.textContent = label;
  }
  const failed = uploads.filter(({ id }) => id === null);
  if (failed.length > 0) {
    const status = failed.some(({ problem }) => problem?.status === 401) ? 401 : 0;
    throw new Problem(status, "Some images could not be sent. Try again, or remove them.");
  }
  for (const upload of uploads) await upload.describe();
  const { content } = form.elements;
  const describe = (text, upload) => text.replaceAll(`![](${upload.url})`, () => upload.markdown);
  typeText(content, uploads.reduce(describe, content.value));
  if (content.value.includes(FORMER))
    throw new Problem(0, "", [{ pointer: "/content", code: "lost_image" }]);
}

/**
 * Show the images that a form has at its beginning, such as those of a comment that is edited.
 * @param {HTMLFormElement} form
 * @param {{id: string, alt: string | null, thumbnail_url: string | null, url: string}[]} images
 */
export function showImages(form, images) {
  fieldOf(form).defaultValue = images.map(({ id }) => id).join(" ");
  for (const { id, alt, thumbnail_url, url } of images)
    addRow(form, id, alt, new URL(thumbnail_url ?? url).pathname);
}

/** Send an image that is new or was turned, and then note its id and put it into the text. */
async function send(form, upload) {
  await upload.start();
  const { former, id } = upload;
  if (id === null || upload.isRemoved) return;
  known.set(id, upload);
  const shown = form.isConnected ? form : (formOfDraft(form) ?? form); // which was opened again
  if (shown !== form) first(shown, "[data-images]").append(upload.row);
  note(shown);
  if (former !== null) {
    const { content } = shown.elements;
    if (content.value.includes(former))
      typeText(content, content.value.replaceAll(urlOf(former), urlOf(id)));
    upload.forgetFormer();
  }
  if (!upload.isForText) return;
  upload.isForText = false;
  insert(shown, upload);
}

/** Note which images a form has, in their order, so that its draft is kept. */
function note(form) {
  const shown = uploadsOf(form).map(({ id }) => id);
  // Those that could not be loaded yet have no row.
  const others = idsIn(fieldOf(form).value).filter((id) => !known.has(id));
  fieldOf(form).value = [...shown.filter(Boolean), ...others].join(" ");
  keepDraft(form);
}

/** Show the images whose ids a form has, such as those of a draft. */
async function showNoted(form) {
  try {
    const ids = idsIn(fieldOf(form).value);
    for (const upload of uploadsOf(form)) if (upload.id) known.set(upload.id, upload);
    const lost = await load(
      form,
      ids.filter((id) => !known.has(id)),
    );
    const unsent = uploadsOf(form).filter(({ id }) => id === null);
    const rows = ids.filter((id) => known.has(id)).map((id) => known.get(id).row);
    first(form, "[data-images]").replaceChildren(...rows, ...unsent.map(({ row }) => row));
    if (lost.length > 0) forgetLost(form, lost);
  } catch (error) {
    const { message } = problemOf(error);
    say(`The images of your draft could not be loaded. ${message}`);
  }
}

/** Load images that this page does not know. Return the ids of those that no longer exist. */
async function load(form, ids) {
  if (ids.length === 0) return [];
  const { data } = await request("GET", `${root}/users/me/images`);
  const lost = [];
  for (const id of ids) {
    const own = data.find((each) => each.id === id);
    const image = own ?? (await findPublished(id));
    if (image) addRow(form, id, image.alt, own ? `${root}/users/me/images/${id}` : urlOf(id));
    else lost.push(id);
  }
  return lost;
}

function forgetLost(form, lost) {
  const { content } = form.elements;
  content.value = lost.reduce(removeFrom, content.value);
  const ids = idsIn(fieldOf(form).value).filter((id) => !lost.includes(id));
  fieldOf(form).value = ids.join(" ");
  note(form);
  say(`${count(lost.length, "image")} of your draft could not be kept for more than a day.`);
}

/**
 * Return an image that a text has, such as that of the draft if the tab was closed as it was published.
 * Return null if there is no such image.
 */
async function findPublished(id) {
  try {
    return (await request("GET", `${urlOf(id)}/metadata`)).data;
  } catch (problem) {
    if (problem.status === 404) return null;
    throw problem;
  }
}

function addRow(form, id, alt, src) {
  const row = copyOf("image-row");
  row.dataset.image = id;
  first(row, "input").value = alt ?? "";
  first(row, "img").src = src;
  first(row, "[data-action=turn-image]").remove(); // this page has no file to turn
  first(form, "[data-images]").append(row);
  known.set(id, Upload.of(row));
}

/** Show images that only their owner can read in the preview as well. */
onPreview((html) => {
  for (const upload of all(document, "[data-images] > li").map(Upload.of))
    for (const image of all(html, `img[src="${upload.url}"]`)) {
      const link = image.closest("a");
      if (link.getAttribute("href") === upload.url) link.href = upload.shownUrl;
      image.src = upload.shownUrl;
    }
});

/**
 * Add images to the list of a form, and to its text if `isInText`.
 * @param {HTMLFormElement} form
 * @param {File[]} files
 */
async function addImages(form, files, isInText) {
  const list = first(form, "[data-images]");
  const { maxBytes, maxImages } = list.dataset;
  const input = first(form, "[data-files]");
  const problems = [];
  let number = 0;
  for (const file of files) {
    if (list.children.length >= Number(maxImages)) {
      problems.push(`You can add ${maxImages} images; ${file.name} was left out.`);
      continue;
    }
    if (file.size > maxBytes) say(`Making ${file.name} smaller …`);
    try {
      const image = await prepareImage(file, Number(maxBytes), input.accept.split(","));
      await addFile(form, file.name, image, isInText);
      number += 1;
    } catch (error) {
      problems.push(problemOf(error).message);
    }
  }
  document.getElementById(`${input.id}-error`).textContent = problems.join(" ");
  if (number > 0) say(`${count(number, "image")} added.`);
}

async function addFile(form, name, image, isInText) {
  const isStill = !isAnimated(new Uint8Array(await image.arrayBuffer()));
  const row = copyOf("image-row");
  first(row, "img").src = URL.createObjectURL(image);
  for (const place of all(row, "[data-name]")) place.textContent = name;
  first(row, "[data-action=turn-image]").hidden = !isStill;
  const upload = new Upload(row, image);
  upload.isForText = isInText;
  first(form, "[data-images]").append(row);
  send(form, upload);
}

/** Insert an image into the text of a form. Whoever is typing goes on at the same place. */
function insert(form, upload) {
  const focused = /** @type {any} */ (document.activeElement);
  const { content } = form.elements;
  const { selectionStart, selectionEnd } = content;
  changeText(form, (text) => addBlock(upload.markdown, text));
  if (focused === content) content.setSelectionRange(selectionStart, selectionEnd);
  else if (focused?.matches("input, textarea")) focused.focus();
}

/** Add files when those before them are in the list. */
function addLater(form, files, isInText) {
  added = added.then(() => addImages(form, files, isInText));
}

onAction("remove-image", (button) => {
  const { form } = button;
  const upload = uploadOf(button);
  const { content } = form.elements;
  if (upload.id) typeText(content, removeFrom(content.value, upload.id));
  upload.row.remove();
  upload.remove();
  note(form);
  first(form, "[data-files]").focus();
});

onAction("move-image", (button) => {
  const { row } = uploadOf(button);
  row.previousElementSibling?.before(row);
  note(button.form);
  // The first one has no such button.
  (row.previousElementSibling ? button : first(row, "input")).focus();
  say(`This is image ${[...row.parentElement.children].indexOf(row) + 1} now.`);
});

onAction("turn-image", async (button) => {
  const upload = uploadOf(button);
  await upload.turn();
  send(button.form, upload);
});

onAction("insert-image", async (button) => {
  const upload = uploadOf(button);
  upload.isForText = upload.id === null;
  if (upload.id !== null) insert(button.form, upload);
});

onAction("mark-image", ({ form }) => {
  isForText = true;
  first(form, "[data-files]").click();
});

/** The files of a drop, or the images of a paste that is not text, such as a part of a document. */
function filesOf({ clipboardData, dataTransfer }) {
  if (dataTransfer) return [...dataTransfer.files];
  if (clipboardData.types.includes("text/plain")) return [];
  return [...clipboardData.files].filter((file) => file.type.startsWith("image/"));
}

/** Take the files of a paste or a drop, which go into the text if it is there that they arrive. */
function takeFiles(target, event) {
  const form = target.form ?? target.closest?.("form") ?? first(document, "form.editor");
  const files = filesOf(event);
  if (files.length === 0 || !form || !fieldOf(form)) return;
  event.preventDefault();
  addLater(form, files, target.name === "content" && form.matches(".editor"));
}

onEvent("change", (target) => {
  if ("files" in target.dataset) {
    addLater(target.form, [...target.files], isForText);
    isForText = false;
    target.value = "";
  } else if (target.closest("[data-images]")) {
    const upload = uploadOf(target);
    if (upload.file) upload.describe().catch(() => null); // again when the text is sent
  }
});
onEvent("cancel", (target) => {
  if (target.dataset && "files" in target.dataset) isForText = false;
});
onEvent("paste", takeFiles);
onEvent("drop", takeFiles);
// A browser would show a file that is dropped beside the text instead of the page.
onEvent("dragover", (_target, event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});
// After the browser has reset the fields of the form.
onEvent("reset", (form) => fieldOf(form) && setTimeout(() => showNoted(form)));
onEvent("restored", (form) => fieldOf(form) && showNoted(form));
addEventListener("beforeunload", (event) => {
  if ([...document.forms].some(hasUnsentImages)) event.preventDefault();
});
ready(() => {
  for (const upload of all(document, "[data-images] > li").map(Upload.of))
    known.set(upload.id, upload);
});
