// Changes that the page makes to a text, as if they were typed, so that Ctrl+Z takes them back. If a
// script assigns the value of a field, the browser's history no longer fits the text.

const SPLIT = /[\ud800-\udbff]$/; // the first half of a character that has two code units

/**
 * Return the range of a text that differs from another text, and what the other text has there.
 * @param {string} before
 * @param {string} after
 */
export function differenceOf(before, after) {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  if (SPLIT.test(before.slice(0, start))) start--;
  let same = 0; // at the end
  while (same < shorter - start && before.at(-1 - same) === after.at(-1 - same)) same++;
  if (SPLIT.test(before.slice(0, before.length - same))) same--;
  return { start, end: before.length - same, text: after.slice(start, after.length - same) };
}

/**
 * Replace the text of a field in one step of the browser's history. The field gets the focus.
 * @param {HTMLInputElement | HTMLTextAreaElement} field
 * @param {string} text
 */
export function typeText(field, text) {
  if (field.value === text) return;
  const { start, end, text: piece } = differenceOf(field.value, text);
  const { readOnly } = field;
  field.readOnly = false; // as it is while its form is being sent
  field.focus();
  field.setSelectionRange(start, end);
  insert(piece);
  if (field.value !== text) {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  field.readOnly = readOnly;
}

/**
 * Put a text in place of the selection, if the browser can.
 *
 * No other call keeps the history. Chromium takes three minutes to insert 5,000 lines as text, and a
 * fifth of a second as HTML. Firefox inserts no HTML into a field, and is fast with text.
 * @param {string} text
 */
function insert(text) {
  const html = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  if (text === "") document.execCommand("delete");
  else if (!document.execCommand("insertHTML", false, html))
    document.execCommand("insertText", false, text);
}
