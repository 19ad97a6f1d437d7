// Names after `@`: while a member types one, those members are offered whose names begin like it.

import { request } from "./api.js";
import { all, first, onEvent } from "./dom.js";
import { faceOf } from "./faces.js";
import { gettext } from "./language.js";
import { root } from "./page.js";
import { typeText } from "./typing.js";

const TYPED = /(?:^|[^\w@/.-])@([\w-]{2,32})$/;
const PAUSE = 150; // milliseconds without a further letter
const MOST = 6; // members that are offered
const STEPS = { ArrowDown: 1, ArrowUp: -1 };
const LIST = "offered-names";
const ATTRIBUTES = ["aria-activedescendant", "aria-autocomplete", "aria-controls", "aria-haspopup"];

let timer = 0;
/** For which the members of the list are offered. */
let offeredFor = "";

const list = () => document.getElementById(LIST);
const options = () => all(document, `#${LIST} > li`);
const chosen = () => first(document, `#${LIST} > [aria-selected=true]`);
const fieldOf = () => first(list().parentElement, "textarea");

/** Return the name that is being typed into a field, without `@`, if the cursor is at its end. */
function nameIn({ value, selectionStart, selectionEnd }) {
  if (selectionStart !== selectionEnd || /[\w-]/.test(value.charAt(selectionEnd))) return undefined;
  return TYPED.exec(value.slice(0, selectionStart))?.[1];
}

function close() {
  clearTimeout(timer);
  if (!list()) return;
  const field = fieldOf();
  for (const name of ATTRIBUTES) field.removeAttribute(name);
  list().remove();
}

/** Offer members whose names begin with what is being typed. Without a connection, none is offered. */
async function offer(field) {
  const name = nameIn(field);
  if (name === undefined) return; // the cursor has moved
  const { data } = await request("GET", `${root}/users?q=${name}&limit=${MOST}`);
  if (nameIn(field) !== name || document.activeElement !== field) return;
  close();
  if (data.length === 0) return;
  const offered = document.createElement("ul");
  offered.id = LIST;
  offered.setAttribute("role", "listbox");
  offered.setAttribute("aria-label", gettext("Members"));
  // Whose username it is comes before whose display name begins like it.
  const isExact = ({ username }) => username.toLowerCase() === name.toLowerCase();
  const sorted = data.toSorted((one, other) => Number(isExact(other)) - Number(isExact(one)));
  offered.append(...sorted.map(optionOf));
  field.closest(".box").append(offered);
  field.setAttribute("aria-controls", LIST);
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-haspopup", "listbox");
  offeredFor = name;
  choose(offered.firstElementChild);
}

/** Return a member as an option of the list. */
function optionOf(user) {
  const option = document.createElement("li");
  option.id = `offered-${user.id}`;
  option.dataset.name = user.username;
  option.setAttribute("role", "option");
  const name = document.createElement("bdi");
  name.textContent = user.display_name ?? user.username;
  const username = document.createElement("span");
  username.className = "meta";
  username.textContent = ` @${user.username}`;
  option.append(faceOf(user), name, username);
  return option;
}

/** Make an option the one that Enter takes. */
function choose(option) {
  for (const each of options()) each.setAttribute("aria-selected", String(each === option));
  fieldOf().setAttribute("aria-activedescendant", option.id);
  list().scrollIntoView({ block: "nearest" });
}

/** Put the username of an option in the place of what was typed. */
function take(option) {
  const field = fieldOf();
  if (nameIn(field) !== offeredFor) return close();
  const { value, selectionStart } = field;
  const start = selectionStart - offeredFor.length;
  const typed = `${value.slice(0, start)}${option.dataset.name} `;
  close();
  typeText(field, typed + value.slice(selectionStart).replace(/^ /, ""));
  field.setSelectionRange(typed.length, typed.length);
  close();
}

onEvent("input", (field) => {
  if (field.name !== "content") return;
  clearTimeout(timer);
  if (nameIn(field) === undefined) close();
  else timer = setTimeout(() => offer(field).catch(close), PAUSE);
});
onEvent("focusout", close);
onEvent("selectionchange", () => list() && nameIn(fieldOf()) !== offeredFor && close());
// Before the field loses the focus.
onEvent("pointerdown", (target, event) => target.closest(`#${LIST}`) && event.preventDefault());
onEvent("mousedown", (target, event) => target.closest(`#${LIST}`) && event.preventDefault());
onEvent("click", (target) => {
  const option = target.closest(`#${LIST} > li`);
  if (option) take(option);
});

/** Keys of the list are not for the rest of the page. */
function onKeyOfList(event) {
  const { key, ctrlKey, metaKey, shiftKey, isComposing } = event;
  if (!list() || shiftKey || isComposing) return;
  if (ctrlKey || metaKey) return close();
  if (key === "Escape") close();
  else if (key === "Enter" || key === "Tab") take(chosen());
  else if (key in STEPS) {
    const offered = options();
    choose(offered.at((offered.indexOf(chosen()) + STEPS[key]) % offered.length));
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

document.addEventListener("keydown", onKeyOfList, true);
