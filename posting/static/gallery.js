// The images of a post or comment, large and one after the other. Without the script, a link leads
// to the file.

import { onAction } from "./actions.js";
import { all, copyOf, first, onEvent } from "./dom.js";
import { gettext } from "./language.js";

const MIN_SWIPE = 40; // pixels

/** @type {any} */
let dialog = null;
let links = []; // of the images
let place = 0; // of the image that is shown
let startOfSwipe = null;

/** Return whether a link leads to the file of its image, and not where a member wants it to lead. */
const isOwn = (link) => link.href === first(link, "img").src;

const hasModifier = ({ altKey, ctrlKey, metaKey, shiftKey }) =>
  altKey || ctrlKey || metaKey || shiftKey;

/** Show the image at a place; the first one follows the last one. */
function show(next) {
  const { length } = links;
  place = (next + length) % length;
  const link = links[place];
  const { alt, srcset, src } = first(link, "img");
  first(dialog, "a").href = src;
  Object.assign(first(dialog, "img"), { alt, sizes: "100vw", srcset, src });
  // Below a text, an image without a description has its number as a name.
  first(dialog, "bdi").textContent = link.closest("figure")?.textContent.trim() ?? alt;
  const values = { place: place + 1, number: length };
  first(dialog, "#gallery-place").textContent = gettext("Image %(place)s of %(number)s", values);
  for (const button of all(dialog, "[data-action$=-image]")) button.hidden = length === 1;
}

function open(link) {
  links = all(link.closest("article"), "a:has(> img)").filter(isOwn);
  dialog = copyOf("gallery");
  document.body.append(dialog);
  show(links.indexOf(link));
  dialog.addEventListener("close", () => {
    dialog.remove();
    dialog = null;
  });
  dialog.showModal();
  first(dialog, "[data-action=close-images]").focus();
}

onEvent("click", (target, event) => {
  const link = target.closest("article a:has(> img)");
  if (!link || !isOwn(link) || hasModifier(event) || !first(document, "#gallery")) return;
  event.preventDefault();
  open(link);
});
onAction("previous-image", () => show(place - 1));
onAction("next-image", () => show(place + 1));
onAction("close-images", () => dialog.close());
onEvent("keydown", (_target, event) => {
  if (!dialog || hasModifier(event)) return;
  if (event.key === "ArrowLeft") show(place - 1);
  if (event.key === "ArrowRight") show(place + 1);
});
onEvent("touchstart", (_target, { touches }) => {
  startOfSwipe = touches.length === 1 ? touches[0] : null; // two fingers zoom
});
onEvent("touchend", (_target, { changedTouches }) => {
  if (!dialog || startOfSwipe === null || visualViewport.scale > 1) return;
  const distance = changedTouches[0].clientX - startOfSwipe.clientX;
  const drift = Math.abs(changedTouches[0].clientY - startOfSwipe.clientY);
  if (Math.abs(distance) >= Math.max(MIN_SWIPE, drift)) show(place - Math.sign(distance));
});
