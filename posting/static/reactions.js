// Reactions of a member to the post and to its comments. Visitors do not load this module.

import { onAction } from "./actions.js";
import { request } from "./api.js";
import { all, copyOf, first } from "./dom.js";
import { onKey } from "./keys.js";
import { root } from "./page.js";

const post = location.pathname.slice(`${root}/p/`.length);

/** @type {Map<string, string> | null} the reader's own reactions, by the ids of the texts */
let own = null;

/** Return the post or the comment that an element is in. */
const textOf = (element) => element.closest("li[id^=c-], #post");
const idOf = (text) => (text.id === "post" ? post : text.id.slice("c-".length));
const pathOf = (text) => (text.id === "post" ? "posts" : "comments");
const actionsOf = (text) => first(text, ".actions");
const picker = () => first(document, ".picker");

/** Make the numbers of the page buttons, of which the reader's own are pressed. */
export async function showReactions() {
  own ??= await findOwn();
  for (const chip of all(document, "span[data-reaction]"))
    chip.replaceWith(buttonOf(textOf(chip), chip.dataset.reaction, chip.textContent));
}

async function findOwn() {
  const { data } = await request("GET", `${root}/posts/${post}/reactions`);
  return new Map(data.map(({ id, reaction }) => [id, reaction]));
}

/** Return the button with the number of a reaction. */
function buttonOf(text, reaction, label) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  Object.assign(button.dataset, { action: "react", reaction });
  button.setAttribute("aria-pressed", String(own?.get(idOf(text)) === reaction));
  return button;
}

/**
 * Show the numbers of the reactions to a text.
 * @param {HTMLElement} text
 * @param {Record<string, number>} counts
 */
function showCounts(text, counts) {
  const { content } = first(document, "#reaction-picker");
  const buttons = all(content, "[data-reaction]").flatMap(({ dataset, textContent }) => {
    const count = counts[dataset.reaction] ?? 0;
    const label = `${textContent} ${count.toLocaleString(document.documentElement.lang)}`;
    return count > 0 ? [buttonOf(text, dataset.reaction, label)] : [];
  });
  let place = first(text, ".reactions");
  if (!place) {
    place = document.createElement("p");
    place.className = "reactions";
    actionsOf(text).before(place);
  }
  for (const former of all(place, "[data-reaction]")) former.remove();
  if (buttons.length === 0) place.remove();
  else place.append(...buttons);
}

function closePicker() {
  const opened = picker();
  if (!opened) return;
  const opener = first(textOf(opened), "[data-action=open-reactions]");
  opener?.setAttribute("aria-expanded", "false");
  opened.remove();
  return opener;
}

onAction("open-reactions", (button) => {
  if (closePicker() === button) return;
  const opened = copyOf("reaction-picker");
  actionsOf(textOf(button)).after(opened);
  button.setAttribute("aria-expanded", "true");
  first(opened, "button").focus();
});

onAction("react", async (button) => {
  const { reaction } = button.dataset;
  const text = textOf(button);
  const id = idOf(text);
  const isOwn = own?.get(id) === reaction;
  const url = `${root}/${pathOf(text)}/${id}/reactions/${reaction}`;
  const { data } = await request(isOwn ? "DELETE" : "PUT", url);
  own ??= new Map();
  if (isOwn) own.delete(id);
  else own.set(id, reaction);
  closePicker();
  showCounts(text, data);
  const shown = first(text, `.reactions > [data-reaction="${reaction}"]`);
  (shown ?? first(text, "[data-action=open-reactions]")).focus();
});

onKey((target, event) => {
  if (event.key === "Escape" && target.closest(".picker, [data-action=open-reactions]"))
    closePicker()?.focus();
});
