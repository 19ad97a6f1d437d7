// The editor of a post: its images and its preview.

import { onAction } from "./actions.js";
import { request, versionOf } from "./api.js";
import { all, copyOf, first, onEvent } from "./dom.js";
import { keepDraft } from "./drafts.js";
import { onForm } from "./forms.js";
import { sendImages, shrink, Upload } from "./images.js";
import "./main.js";
import { goTo, ready, root } from "./page.js";

/** Fulfilled when the images that were chosen are in the list. */
let chosen = Promise.resolve();

const uploads = () => all(document, "[data-images] > li").map(Upload.of);
const hasUnsentImages = () => uploads().some((upload) => !upload.isSent);
const uploadOf = (button) => Upload.of(button.closest("[data-images] > li"));

onForm("post", {
  prepare: () => chosen,
  hasFiles: hasUnsentImages,
  async sent(form, data, etag) {
    // The post is stored: whatever is sent again is an edit of this version.
    form.action = `${root}/posts/${data.id}`;
    form.dataset.api = "PATCH";
    form.dataset.version = versionOf(etag);
    await sendImages(uploads(), data.id);
    goTo(`${root}/p/${data.id}`);
  },
});

async function addImages(input, files) {
  const list = first(input.form, "[data-images]");
  const place = document.getElementById("images-error");
  const left = [];
  for (const file of files) {
    if (file.size > input.dataset.maxBytes) place.textContent = `Making ${file.name} smaller …`;
    const fitting = file.size <= input.dataset.maxBytes ? file : await shrink(file);
    if (
      !fitting ||
      fitting.size > input.dataset.maxBytes ||
      list.children.length >= input.dataset.maxImages
    ) {
      left.push(file.name);
      continue;
    }
    const row = copyOf("image-row");
    first(row, "img").src = URL.createObjectURL(fitting);
    for (const name of all(row, "[data-name]")) name.textContent = file.name;
    new Upload(row, fitting);
    list.append(row);
  }
  place.textContent = left.length > 0 ? `Too large or too many: ${left.join(", ")}.` : "";
}

onAction("remove-image", async (button) => {
  const upload = uploadOf(button);
  if (upload.id && !confirm("Remove this image?")) return;
  await upload.remove();
  document.getElementById("images").focus();
});

onAction("insert-image", (button) => {
  const upload = uploadOf(button);
  const text = first(button.form, "[name=content]");
  const alt = upload.alt.replace(/[[\]\\]/g, "\\$&");
  const { selectionStart, selectionEnd } = text;
  text.setRangeText(`![${alt}](${root}/images/${upload.id})`, selectionStart, selectionEnd, "end");
  text.focus();
  keepDraft(button.form);
});

onAction("preview", async ({ form }) => {
  const { data } = await request("POST", `${root}/preview`, {
    body: { content: first(form, "[name=content]").value },
  });
  const place = first(form, "[data-preview]");
  // The HTML is the service's own, sanitized as on the page.
  place.innerHTML = data.html;
  place.focus();
});

ready(() => {
  uploads();
  const input = first(document, "#images");
  input.addEventListener("change", () => {
    const files = [...input.files];
    input.value = "";
    chosen = chosen.then(() => addImages(input, files));
  });
});

onEvent("keydown", (target, event) => {
  // Enter in the description of an image does not publish the post.
  if (event.key === "Enter" && target.closest("[data-images] input")) event.preventDefault();
});
addEventListener("beforeunload", (event) => hasUnsentImages() && event.preventDefault());
