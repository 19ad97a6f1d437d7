// The page of unsent texts: those that were typed on this device and not published.

import { me } from "./account.js";
import { onAction } from "./actions.js";
import { copyOf, first } from "./dom.js";
import { discardDraft, listDrafts } from "./drafts.js";
import { gettext } from "./language.js";
import "./main.js";
import { undoButton } from "./offers.js";
import { ready, root } from "./page.js";
import { say } from "./status.js";
import { showTimes } from "./times.js";

const list = () => first(document, "[data-unsent]");

function show() {
  if (!me) return;
  const drafts = listDrafts();
  first(document, "#no-texts").hidden = drafts.length > 0;
  list().replaceChildren(...drafts.map(rowOf));
  showTimes(list());
}

/** @param {import("./drafts.js").Draft & {id: string}} draft */
function rowOf({ id, kind, page, texts, at }) {
  const row = copyOf("text-row");
  const { title, images: _, files: __, ...others } = texts;
  const link = first(row, "a");
  link.textContent = title || kind;
  link.id = `text-${id}`;
  link.href = page.startsWith(`${root}/write`) ? `${root}/write?draft=${id}` : page;
  if (title) first(row, "[data-name]").textContent = `${kind} · `;
  first(row, "time").dateTime = at;
  first(row, "pre").textContent = Object.values(others).filter(Boolean).join("\n\n");
  const button = first(row, "button");
  button.value = id;
  button.setAttribute("aria-describedby", link.id);
  return row;
}

onAction("discard-text", ({ value }) => {
  const undo = discardDraft(value);
  show();
  list().focus();
  const offer = undoButton(() => {
    undo();
    show();
  });
  say(gettext("Your text is discarded."), offer);
});

document.addEventListener("account", show);
ready(show);
