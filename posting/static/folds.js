// Threads can be folded: what answers a comment is then hidden, and stays so when the page changes.

import { onAction } from "./actions.js";
import { all, copyOf, first } from "./dom.js";
import { ngettext } from "./language.js";

/** The ids of the comments whose answers are hidden. */
const folded = new Set();

const comments = () => all(document, ".thread > li");
const levelOf = (comment) => Number(/level-(\d)/.exec(comment.className)[1]);

/** The comments below another one. */
function answersTo(comment) {
  const level = levelOf(comment);
  const found = [];
  let next = comment.nextElementSibling;
  for (; next && levelOf(next) > level; next = next.nextElementSibling) found.push(next);
  return found;
}

/** Add to each comment with answers a button that folds them. */
export function showFolds() {
  for (const comment of comments()) {
    if (answersTo(comment).length === 0) continue;
    const place = first(comment, ".actions") ?? first(comment, ".meta, .deleted");
    place.append(copyOf("fold-button"));
  }
  showAnswers();
}

/** Show the answers that are not folded away. */
function showAnswers() {
  let foldedLevel = Infinity; // of the comment whose answers are hidden
  for (const comment of comments()) {
    const level = levelOf(comment);
    if (level <= foldedLevel) foldedLevel = Infinity;
    comment.hidden = level > foldedLevel;
    const isFolded = folded.has(comment.id);
    if (isFolded && !comment.hidden) foldedLevel = level;
    const button = first(comment, "[data-action=fold]");
    if (!button) continue;
    button.setAttribute("aria-expanded", String(!isFolded));
    const { length } = answersTo(comment);
    button.textContent = isFolded
      ? ngettext("Show %(num)s reply", "Show %(num)s replies", length)
      : copyOf("fold-button").textContent;
  }
}

/** Show all answers, as one of them is wanted. */
export function unfold() {
  folded.clear();
  showAnswers();
}

onAction("fold", (button) => {
  const { id } = button.closest("li");
  if (!folded.delete(id)) folded.add(id);
  showAnswers();
});
