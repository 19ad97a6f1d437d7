// The images and files of a text: added, put in order and removed; images are also described and
// turned. They are sent while the text is written. The fields `images` and `files` of a form have
// their ids, so that a draft keeps them.

import { onAction } from "./actions.js";
import { isAnimated } from "./animations.js";
import { request } from "./api.js";
import { all, copyOf, first, onEvent } from "./dom.js";
import { formOfDraft, keepDraft } from "./drafts.js";
import { Picture, prepareImage, removeFrom, urlOf } from "./images.js";
import { gettext, ngettext, sizeOf } from "./language.js";
import { addBlock } from "./marks.js";
import { ready, root } from "./page.js";
import { Problem, problemOf } from "./problem.js";
import { say } from "./status.js";
import { changeText, onPreview } from "./text.js";
import { typeText } from "./typing.js";
import { Upload, uploadIn } from "./uploads.js";

const FORMER = `](${root}/images/unsent-image-`; // in drafts of an earlier version

/**
 * What a text can have, by the names of fields: the lists, the templates of their rows, and how an
 * item is shown in a row.
 */
const KINDS = {
  images: { list: "[data-images]", template: "image-row", show: showImage },
  files: { list: "[data-downloads]", template: "file-row", show: showFile },
};
/** What is said about images and files. */
const WORDS = {
  images: {
    sending: (place, number) =>
      gettext("Sending image %(place)s of %(number)s …", { place, number }),
    notSent: gettext("Some images could not be sent. Try again, or remove them."),
    notLoaded: (reason) =>
      gettext("The images of your draft could not be loaded. %(reason)s", { reason }),
    lost: (number) =>
      ngettext(
        "%(num)s image of your draft could not be kept for more than a day.",
        "%(num)s images of your draft could not be kept for more than a day.",
        number,
      ),
    tooMany: (most, name) =>
      ngettext(
        "You can add %(num)s image; %(name)s was left out.",
        "You can add %(num)s images; %(name)s was left out.",
        most,
        { name },
      ),
    added: (number) => ngettext("%(num)s image added.", "%(num)s images added.", number),
  },
  files: {
    sending: (place, number) =>
      gettext("Sending file %(place)s of %(number)s …", { place, number }),
    notSent: gettext("Some files could not be sent. Try again, or remove them."),
    notLoaded: (reason) =>
      gettext("The files of your draft could not be loaded. %(reason)s", { reason }),
    lost: (number) =>
      ngettext(
        "%(num)s file of your draft could not be kept for more than a day.",
        "%(num)s files of your draft could not be kept for more than a day.",
        number,
      ),
    tooMany: (most, name) =>
      ngettext(
        "You can add %(num)s file; %(name)s was left out.",
        "You can add %(num)s files; %(name)s was left out.",
        most,
        { name },
      ),
    added: (number) => ngettext("%(num)s file added.", "%(num)s files added.", number),
  },
};
const ROWS = "[data-images] > li, [data-downloads] > li";

/** @type {Map<string, Upload>} what forms of this page have had, by their ids */
const known = new Map();
/** Fulfilled when the files that were chosen are in their list. */
let added = Promise.resolve();
/** Whether the images that are being chosen are for the text. */
let isForText = false;

/** @returns {any} */
const uploadOf = (row) =>
  uploadIn(row) ?? new (row.matches("[data-images] > li") ? Picture : Upload)(row, null);
/** @param {any} form */
const uploadsOf = (form, rows = ROWS) => all(form, rows).map(uploadOf);
const listOf = (form, kind) => first(form, KINDS[kind].list);
const inList = (form, kind) => uploadsOf(form, `${KINDS[kind].list} > li`);
const uploadAt = (button) => uploadOf(button.closest(ROWS));
const fieldOf = (form, kind = "images") => form.elements[kind];
const idsIn = (text) => text?.split(" ").filter(Boolean) ?? [];

/**
 * Return the body of a request, in which `images` and `files` are lists. An edit sends a list only if
 * it has changed, since it is the whole list: it would delete what was added elsewhere.
 * @param {Record<string, string | null>} values
 * @param {any} form
 */
export function withAttachments({ images, files, ...texts }, form) {
  /** @type {Record<string, string | null | string[]>} */
  const body = texts;
  for (const [kind, ids] of Object.entries({ images, files })) {
    const { defaultValue, value } = fieldOf(form, kind);
    if (form.dataset.api !== "PATCH" || value !== defaultValue) body[kind] = idsIn(ids);
  }
  return body;
}

/** @param {any} form */
export const hasUnsentFiles = (form) => uploadsOf(form).some(({ id }) => id === null);

/**
 * Wait until the images of a form, their descriptions and the files are sent. Throw a `Problem` if
 * some could not be sent, so that the text waits for them.
 * @param {any} form
 */
export async function finishAttachments(form) {
  await added;
  const button = first(form, "button:not([type=button])");
  for (const kind of Object.keys(KINDS)) {
    const uploads = inList(form, kind);
    for (const [index, upload] of uploads.entries()) {
      if (upload.id !== null) continue;
      const label = button.textContent;
      button.textContent = WORDS[kind].sending(index + 1, uploads.length);
      await (upload.problem ? send(form, upload) : upload.sending);
      button.textContent = label;
    }
    const failed = uploads.filter(({ id }) => id === null);
    if (failed.length > 0) {
      const status = failed.some(({ problem }) => problem?.status === 401) ? 401 : 0;
      throw new Problem(status, WORDS[kind].notSent);
    }
  }
  const pictures = inList(form, "images");
  for (const picture of pictures) await picture.describe();
  const { content } = form.elements;
  const describe = (text, picture) =>
    text.replaceAll(`![](${picture.url})`, () => picture.markdown);
  typeText(content, pictures.reduce(describe, content.value));
  if (content.value.includes(FORMER))
    throw new Problem(0, "", [{ pointer: "/content", code: "lost_image" }]);
}

/**
 * Show what a form has at its beginning, such as the images and files of a comment that is edited.
 * @param {HTMLFormElement} form
 * @param {{images: object[], files: object[]}} text
 */
export function showAttachments(form, { images, files }) {
  for (const [kind, items] of Object.entries({ images, files })) {
    fieldOf(form, kind).defaultValue = items.map(({ id }) => id).join(" ");
    for (const item of items) addRow(form, kind, item);
  }
}

/** Send what is new or was turned, and then note its id. Put an image into the text if it is for it. */
async function send(form, upload) {
  await upload.start();
  const { former, id, kind } = upload;
  if (id === null || upload.isRemoved) return;
  known.set(id, upload);
  const shown = form.isConnected ? form : (formOfDraft(form) ?? form); // which was opened again
  if (shown !== form) listOf(shown, kind).append(upload.row);
  note(shown, kind);
  if (former) {
    const { content } = shown.elements;
    if (content.value.includes(former))
      typeText(content, content.value.replaceAll(urlOf(former), urlOf(id)));
    upload.forgetFormer();
  }
  if (!upload.isForText) return;
  upload.isForText = false;
  insert(shown, upload);
}

/** Note which images or files a form has, in their order, so that its draft is kept. */
function note(form, kind) {
  const shown = inList(form, kind).map(({ id }) => id);
  const field = fieldOf(form, kind);
  // Those that could not be loaded yet have no row.
  const others = idsIn(field.value).filter((id) => !known.has(id));
  field.value = [...shown.filter(Boolean), ...others].join(" ");
  keepDraft(form);
}

/** Show what a form has by its fields, such as the images and files of a draft. */
async function showNoted(form) {
  for (const upload of uploadsOf(form)) if (upload.id) known.set(upload.id, upload);
  for (const kind of Object.keys(KINDS))
    try {
      const lost = await load(form, kind, idsIn(fieldOf(form, kind).value));
      const ids = idsIn(fieldOf(form, kind).value); // others may have been added meanwhile
      const unsent = inList(form, kind).filter(({ id }) => id === null);
      const rows = ids.filter((id) => known.has(id)).map((id) => known.get(id).row);
      listOf(form, kind).replaceChildren(...rows, ...unsent.map(({ row }) => row));
      if (lost.length > 0) forgetLost(form, kind, lost);
    } catch (error) {
      say(WORDS[kind].notLoaded(problemOf(error).message));
    }
}

/** Load what this page does not know of some ids. Return the ids of what no longer exists. */
async function load(form, kind, ids) {
  const missing = ids.filter((id) => !known.has(id));
  if (missing.length === 0) return [];
  const { data } = await request("GET", `${root}/users/me/${kind}`);
  const lost = [];
  for (const id of missing) {
    const own = data.find((each) => each.id === id);
    const item = own ?? (await findPublished(kind, id));
    if (item) addRow(form, kind, item, own !== undefined);
    else lost.push(id);
  }
  return lost;
}

function forgetLost(form, kind, lost) {
  const { content } = form.elements;
  content.value = lost.reduce(removeFrom, content.value);
  const ids = idsIn(fieldOf(form, kind).value).filter((id) => !lost.includes(id));
  fieldOf(form, kind).value = ids.join(" ");
  note(form, kind);
  say(WORDS[kind].lost(lost.length));
}

/**
 * Return what a text has, such as that of the draft if the tab was closed as it was published. Return
 * null if there is no such image or file.
 */
async function findPublished(kind, id) {
  const path = kind === "images" ? `${id}/metadata` : id;
  try {
    return (await request("GET", `${root}/${kind}/${path}`)).data;
  } catch (problem) {
    if (problem.status === 404) return null;
    throw problem;
  }
}

/** Add the row of what the service has, which no text has yet if `isOwn`. */
function addRow(form, kind, item, isOwn = false) {
  const { list, template, show } = KINDS[kind];
  const row = copyOf(template);
  row.dataset.id = item.id;
  show(row, item, isOwn);
  first(form, list).append(row);
  known.set(item.id, uploadOf(row));
}

function showImage(row, { alt, id, thumbnail_url, url }, isOwn) {
  const path = isOwn ? `/users/me/images/${id}` : null;
  first(row, "input").value = alt ?? "";
  first(row, "img").src = path ? root + path : new URL(thumbnail_url ?? url).pathname;
  first(row, "[data-action=turn-image]").remove(); // this page has no file to turn
}

function showFile(row, { name, size }) {
  for (const place of all(row, "[data-name]")) place.textContent = name;
  first(row, "[data-size]").textContent = sizeOf(size);
}

/** Show images that only their owner can read in the preview as well. */
onPreview((html) => {
  for (const upload of uploadsOf(document, "[data-images] > li"))
    for (const image of all(html, `img[src="${upload.url}"]`)) {
      const link = image.closest("a");
      if (link.getAttribute("href") === upload.url) link.href = upload.shownUrl;
      image.src = upload.shownUrl;
    }
});

/**
 * Add files to a list of a form, and images also to its text if `isInText`.
 * @param {HTMLFormElement} form
 * @param {"images" | "files"} kind
 * @param {File[]} files
 */
async function addFiles(form, kind, files, isInText) {
  const list = listOf(form, kind);
  const most = Number(list.dataset.most);
  const input = first(form, `[data-files=${kind}]`);
  const problems = [];
  let number = 0;
  for (const file of files) {
    if (list.children.length >= most) {
      problems.push(WORDS[kind].tooMany(most, file.name));
      continue;
    }
    try {
      const types = input.accept.split(",");
      const maxBytes = Number(list.dataset.maxBytes);
      if (kind === "images") await addImage(form, file, maxBytes, types, isInText);
      else addFile(form, file, maxBytes, types);
      number += 1;
    } catch (error) {
      problems.push(problemOf(error).message);
    }
  }
  document.getElementById(`${input.id}-error`).textContent = problems.join(" ");
  if (number > 0) say(WORDS[kind].added(number));
}

async function addImage(form, file, maxBytes, types, isInText) {
  if (file.size > maxBytes) say(gettext("Making %(name)s smaller …", { name: file.name }));
  const image = await prepareImage(file, maxBytes, types);
  const isStill = !isAnimated(new Uint8Array(await image.arrayBuffer()));
  const row = copyOf("image-row");
  first(row, "img").src = URL.createObjectURL(image);
  for (const place of all(row, "[data-name]")) place.textContent = file.name;
  first(row, "[data-action=turn-image]").hidden = !isStill;
  const picture = new Picture(row, image);
  picture.isForText = isInText;
  listOf(form, "images").append(row);
  send(form, picture);
}

function addFile(form, file, maxBytes, types) {
  const { name, size } = file;
  const values = { name, limit: sizeOf(maxBytes) };
  if (!types.some((type) => name.toLowerCase().endsWith(type)))
    throw new Problem(
      0,
      gettext("%(name)s is not of a kind that can be added. Add it as PDF or ZIP.", values),
    );
  if (size > maxBytes)
    throw new Problem(0, gettext("%(name)s is larger than %(limit)s. Make it smaller.", values));
  if (size === 0) throw new Problem(0, gettext("%(name)s is empty.", values));
  const row = copyOf("file-row");
  showFile(row, file);
  listOf(form, "files").append(row);
  send(form, new Upload(row, file));
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
function addLater(form, kind, files, isInText) {
  added = added.then(() => addFiles(form, kind, files, isInText));
}

onAction("remove-upload", (button) => {
  const { form } = button;
  const upload = uploadAt(button);
  const { content } = form.elements;
  if (upload.id) typeText(content, removeFrom(content.value, upload.id));
  upload.row.remove();
  upload.remove();
  note(form, upload.kind);
  first(form, `[data-files=${upload.kind}]`).focus();
});

onAction("move-image", (button) => {
  const { row } = uploadAt(button);
  row.previousElementSibling?.before(row);
  note(button.form, "images");
  // The first one has no such button.
  (row.previousElementSibling ? button : first(row, "input")).focus();
  const number = [...row.parentElement.children].indexOf(row) + 1;
  say(gettext("This is image %(number)s now.", { number }));
});

onAction("turn-image", async (button) => {
  const upload = uploadAt(button);
  await upload.turn();
  send(button.form, upload);
});

onAction("insert-image", async (button) => {
  const upload = uploadAt(button);
  upload.isForText = upload.id === null;
  if (upload.id !== null) insert(button.form, upload);
});

onAction("mark-image", ({ form }) => {
  isForText = true;
  first(form, "[data-files=images]").click();
});

/** The files of a drop, or the images of a paste that is not text, such as a part of a document. */
function filesOf({ clipboardData, dataTransfer }) {
  if (dataTransfer) return [...dataTransfer.files];
  if (clipboardData.types.includes("text/plain")) return [];
  return [...clipboardData.files].filter((file) => file.type.startsWith("image/"));
}

/**
 * Take the files of a paste or a drop. Images go into the text if it is there that they arrive.
 */
function takeFiles(target, event) {
  const form = target.form ?? target.closest?.("form") ?? first(document, "form.editor");
  const files = filesOf(event);
  if (files.length === 0 || !form || !fieldOf(form)) return;
  event.preventDefault();
  const images = files.filter(({ type }) => type.startsWith("image/"));
  const others = files.filter((file) => !images.includes(file));
  const isInText = target.name === "content" && form.matches(".editor");
  if (images.length > 0) addLater(form, "images", images, isInText);
  if (others.length > 0) addLater(form, "files", others, false);
}

onEvent("change", (target) => {
  const { files: kind } = target.dataset;
  if (kind) {
    addLater(target.form, kind, [...target.files], isForText);
    isForText = false;
    target.value = "";
  } else if (target.closest("[data-images]")) {
    const picture = uploadAt(target);
    if (picture.file) picture.describe().catch(() => null); // again when the text is sent
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
  if ([...document.forms].some(hasUnsentFiles)) event.preventDefault();
});
ready(() => {
  for (const upload of uploadsOf(document)) known.set(upload.id, upload);
});
