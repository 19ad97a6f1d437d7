// The editor of a post and its images.

import { me } from "./account.js";
import { onAction } from "./actions.js";
import { request, versionOf } from "./api.js";
import { all, copyOf, first, onEvent } from "./dom.js";
import { forgetDraft } from "./drafts.js";
import { addLink, bodyOf } from "./fields.js";
import { onForm } from "./forms.js";
import { hasLostImage, prepareImage, sendImages, Upload } from "./images.js";
import { onKey } from "./keys.js";
import "./main.js";
import { addBlock } from "./marks.js";
import { goTo, ready, root } from "./page.js";
import { Problem, problemOf } from "./problem.js";
import { say, sayNext } from "./status.js";
import { changeText, onPreview } from "./text.js";
import { typeText } from "./typing.js";
import { count } from "./words.js";

/** Fulfilled when the images that were added are in the list. */
let added = Promise.resolve();
/** Whether the images that are being chosen are for the text. */
let isForText = false;

const uploads = () => all(document, "[data-images] > li").map(Upload.of);
const hasUnsentImages = () => uploads().some((upload) => !upload.isSent);
const uploadOf = (button) => Upload.of(button.closest("[data-images] > li"));

onForm("post", {
  async prepare(form) {
    await added;
    if (hasLostImage(bodyOf(form).content, uploads()))
      throw new Problem(0, "", [{ pointer: "/content", code: "lost_image" }]);
  },
  hasFiles: hasUnsentImages,
  async sent(form, data, etag) {
    const isNew = form.dataset.api === "POST";
    becomeEdit(form, data.id, etag);
    try {
      await sendImages(uploads(), data.id);
    } catch (problem) {
      await showImagesInText(form).catch(() => null); // those that were sent
      setTimeout(() => showAsEdit(form, data.id)); // once the problem is shown
      throw problem;
    }
    await showImagesInText(form);
    sayNext(isNew ? "Your post is published." : "Your post is saved.");
    goTo(`${root}/p/${data.id}`);
  },
});

/** The post is stored: whatever is sent again is an edit of this version. */
function becomeEdit(form, id, etag) {
  form.action = `${root}/posts/${id}`;
  form.dataset.api = "PATCH";
  form.dataset.draft = "Edit of a post";
  form.dataset.version = versionOf(etag);
  form.dataset.current = `${root}/p/${id}`;
  for (const control of form.elements) {
    if ("defaultValue" in control) control.defaultValue = control.value;
  }
}

/** Turn the page for a new post into one for an edit of it. */
function showAsEdit(form, id) {
  history.replaceState(null, "", `${root}/p/${id}/edit`);
  first(document, "h1").textContent = "Edit";
  first(form, "button:not([type])").textContent = "Save";
  addLink(form, "See the post", `${root}/p/${id}`);
}

/** Replace the URLs by which the text shows images that have ids by now. */
async function showImagesInText(form) {
  const field = form.elements.content;
  const text = uploads().reduce((before, upload) => upload.update(before), field.value);
  if (text === field.value) return;
  typeText(field, text);
  forgetDraft(form); // of this change, which is sent at once
  const { action, dataset } = form;
  const headers = { "If-Match": `"${dataset.version}"` };
  const { etag } = await request("PATCH", action, { body: { content: text }, headers });
  dataset.version = versionOf(etag);
  field.defaultValue = text;
}

/** Show images that are not sent yet in the preview as well. */
onPreview((html) => {
  for (const { draftUrl, shownUrl } of uploads())
    for (const image of all(html, `img[src="${draftUrl}"]`)) image.src = shownUrl;
});

/**
 * Add images to the list, and to the text if `isInText`.
 * @param {HTMLFormElement} form
 * @param {File[]} files
 */
async function addImages(form, files, isInText) {
  const list = first(form, "[data-images]");
  const { maxBytes, maxImages } = list.dataset;
  const types = first(form, "#images").accept.split(",");
  const problems = [];
  let number = 0;
  for (const file of files) {
    if (list.children.length >= Number(maxImages)) {
      problems.push(`A post can have ${maxImages} images; ${file.name} was left out.`);
      continue;
    }
    if (file.size > maxBytes) say(`Making ${file.name} smaller …`);
    try {
      const upload = addRow(list, file.name, await prepareImage(file, Number(maxBytes), types));
      if (isInText) insert(form, upload);
      number += 1;
    } catch (error) {
      problems.push(problemOf(error).message);
    }
  }
  document.getElementById("images-error").textContent = problems.join(" ");
  if (number > 0) say(`${count(number, "image")} added.`);
}

function addRow(list, name, image) {
  const row = copyOf("image-row");
  first(row, "img").src = URL.createObjectURL(image);
  for (const place of all(row, "[data-name]")) place.textContent = name;
  const upload = new Upload(row, image);
  list.append(row);
  return upload;
}

const insert = (form, upload) => changeText(form, (text) => addBlock(upload.markdown, text));

/** Add files when those before them are in the list. */
function addLater(form, files, isInText) {
  added = added.then(() => addImages(form, files, isInText));
}

onAction("remove-image", async (button) => {
  const { form } = button;
  const upload = uploadOf(button);
  if (upload.id && !confirm("Remove this image?")) return;
  await upload.remove();
  const field = form.elements.content;
  typeText(field, upload.removeFrom(field.value));
  first(form, "#images").focus();
});

onAction("insert-image", (button) => insert(button.form, uploadOf(button)));

onAction("mark-image", () => {
  isForText = true;
  first(document, "#images").click();
});

/** The files of a drop, or the images of a paste that is not text, such as a part of a document. */
function filesOf({ clipboardData, dataTransfer }) {
  if (dataTransfer) return [...dataTransfer.files];
  if (clipboardData.types.includes("text/plain")) return [];
  return [...clipboardData.files].filter((file) => file.type.startsWith("image/"));
}

/** Take the files of a paste or a drop, which go into the text if it is there that they arrive. */
function takeFiles(target, event) {
  const files = filesOf(event);
  if (files.length === 0) return;
  event.preventDefault();
  addLater(first(document, "form.editor"), files, target.name === "content");
}

/** Show who may not edit the post that they may not, if they are known. */
function showAuthor() {
  const form = first(document, "form.editor");
  const isOther = me !== null && (form.dataset.author ?? me.id) !== me.id;
  first(document, "#not-author").hidden = !isOther;
  form.hidden = isOther;
}

document.addEventListener("account", showAuthor);
ready(() => {
  showAuthor();
  uploads();
  const form = first(document, "form.editor");
  const input = first(form, "#images");
  input.addEventListener("change", () => {
    addLater(form, [...input.files], isForText);
    isForText = false;
    input.value = "";
  });
  input.addEventListener("cancel", () => {
    isForText = false;
  });
});

onEvent("paste", takeFiles);
onEvent("drop", takeFiles);
// A browser would show a file that is dropped beside the text instead of the page.
onEvent("dragover", (_target, event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});
onKey((target, event) => {
  if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
  // Enter in the title leads to the text, and in the description of an image does nothing.
  if (target.name === "title") target.form.elements.content.focus();
  else if (!target.closest("[data-images] input")) return;
  event.preventDefault();
});
addEventListener("beforeunload", (event) => hasUnsentImages() && event.preventDefault());
