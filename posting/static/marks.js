// The marks of Markdown that the bar over a text adds.

/** @typedef {{text: string, start: number, end: number}} Selection */
/** @typedef {{from: number, to: number}} Part of a text */

const AROUND = { bold: "**", italic: "*" };
const BEFORE = { list: "- ", quote: "> " };
const PRESENT = { list: /^([ \t]*)[-+*] /, quote: /^([ \t]*)> ?/ };
const MAX_STARS = 3; // of bold and italic together
// What is before the text of a line: marks of quotes, lists, tasks and headings.
const BEGINNING =
  /^[ \t]*(?:>[ \t]*|(?:[-+*]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?|#{1,6}[ \t]+)*/;
const LINK = /(?<!!)\[([^[\]]*)\]\(([^()\s]*)\)/g;
const URL = /^(?:https?:\/\/|www\.)\S+$/i;
const NO_URL = "https://";

/**
 * Return a text and its selection with a mark added; a mark that is there already is removed.
 * @param {string} mark
 * @param {Selection} selection
 * @returns {Selection}
 */
export function addMark(mark, selection) {
  if (mark in BEFORE) return markLines(mark, selection);
  if (mark === "link") return removeLink(selection) ?? addLinks(selection);
  return markParts(mark, selection);
}

const startOfLine = (text, index) => text.slice(0, index).lastIndexOf("\n") + 1;

function endOfLine(text, index) {
  const end = text.indexOf("\n", index);
  return end === -1 ? text.length : end;
}

/**
 * Return the parts of a selection that a mark can go around: the text of each line, without spaces at
 * its ends. If there is no text, the place of the cursor is the only part.
 * @param {Selection} selection
 * @returns {Part[]}
 */
function partsOf({ text, start, end }) {
  const parts = [];
  let begin = startOfLine(text, start);
  let from = start;
  for (const line of text.slice(begin, endOfLine(text, end)).split("\n")) {
    from = Math.max(start, begin + BEGINNING.exec(line)[0].length);
    const selected = text.slice(from, Math.min(end, begin + line.length));
    const words = selected.trim();
    const first = from + selected.indexOf(words);
    if (words) parts.push({ from: first, to: first + words.length });
    begin += line.length + 1;
  }
  const cursor = Math.max(from, end);
  return parts.length > 0 ? parts : [{ from: cursor, to: cursor }];
}

/**
 * Return a part without stars at its ends, and without what would keep stars around it from being a
 * mark: a backslash at its end, or punctuation at an end beside a letter, as in `see(this)`.
 * @param {string} text
 * @param {Part} part
 * @returns {Part}
 */
function innerPart(text, { from, to }) {
  const words = text.slice(from, to);
  const [, left, , right] = /^(\*+)([^*]+)(\*+)$/.exec(words) ?? [];
  if (left) return { from: from + left.length, to: to - right.length };
  if (/[[\]`*_~]/.test(words)) return { from, to };
  const isLetter = (index) => /[\p{L}\p{N}]/u.test(text.charAt(index));
  const before = isLetter(from - 1) ? /^\p{P}*/u.exec(words)[0].length : 0;
  const after = (isLetter(to) ? /\p{P}*$/u : /\\?$/).exec(words)[0].length;
  return before + after < words.length ? { from: from + before, to: to - after } : { from, to };
}
/** Return whether a part has a mark around it, which more stars may surround. */
function isMarked(text, { from, to }, mark) {
  const before = /\**$/.exec(text.slice(Math.max(0, from - MAX_STARS), from))[0].length;
  const after = /^\**/.exec(text.slice(to, to + MAX_STARS))[0].length;
  const stars = Math.min(before, after);
  return mark === "italic" ? stars % 2 === 1 : stars >= AROUND.bold.length;
}

/** Put a mark around each part of a selection, or remove it if all parts have it. */
function markParts(mark, { text, start, end }) {
  const stars = AROUND[mark];
  const parts = partsOf({ text, start, end }).map((part) => innerPart(text, part));
  const isAdded = !parts.every((part) => isMarked(text, part, mark));
  const replacements = parts
    .filter((part) => isMarked(text, part, mark) !== isAdded)
    .map(({ from, to }) => {
      const words = text.slice(from, to);
      if (isAdded) return { from, to, text: stars + words + stars };
      return { from: from - stars.length, to: to + stars.length, text: words };
    });
  const result = replaceParts(text, replacements);
  if (isAdded && parts.length === 1) {
    result.start += stars.length;
    result.end -= stars.length;
  }
  return result;
}

/**
 * Replace parts of a text, and select from the first to the last of them.
 * @param {string} text
 * @param {(Part & {text: string})[]} replacements
 * @returns {Selection}
 */
function replaceParts(text, replacements) {
  const start = replacements[0].from;
  let result = text.slice(0, start);
  let last = start;
  for (const { from, to, text: words } of replacements) {
    result += text.slice(last, from) + words;
    last = to;
  }
  return { text: result + text.slice(last), start, end: result.length };
}

/** Remove the link in which a selection is. Return null if it is in none. */
function removeLink({ text, start, end }) {
  const begin = startOfLine(text, start);
  for (const match of text.slice(begin, endOfLine(text, end)).matchAll(LINK)) {
    const from = begin + match.index;
    const to = from + match[0].length;
    const [, words, url] = match;
    if (from > start || to < end) continue;
    return replaceParts(text, [{ from, to, text: words || (url === NO_URL ? "" : url) }]);
  }
  return null;
}

/** Make each part of a selection a link, and select what is still to be typed. */
function addLinks(selection) {
  const { text } = selection;
  const parts = partsOf(selection);
  const links = parts.map(({ from, to }) => {
    const words = text.slice(from, to);
    return { from, to, text: URL.test(words) ? `[](${urlOf(words)})` : `[${words}](${NO_URL})` };
  });
  const result = replaceParts(text, links);
  if (parts.length > 1) return result;
  const [{ from, to }] = parts;
  const words = text.slice(from, to);
  if (words === "" || URL.test(words)) return { ...result, start: from + 1, end: from + 1 };
  return { ...result, start: result.end - NO_URL.length - 1, end: result.end - 1 };
}

/** Return an address as a link has it. A parenthesis would end the link. */
function urlOf(address) {
  const url = /^www/i.test(address) ? `https://${address}` : address;
  return url.replaceAll("(", "%28").replaceAll(")", "%29");
}

/** Begin each line of a selection with a mark, or none if all do so. */
function markLines(name, { text, start, end }) {
  const mark = BEFORE[name];
  const present = PRESENT[name];
  while (start < end && text[end - 1] === "\n") end -= 1;
  while (start < end && text[start] === "\n") start += 1;
  const first = startOfLine(text, start);
  const last = endOfLine(text, end);
  const lines = text.slice(first, last).split("\n");
  const isBlank = (line) => lines.length > 1 && line.trim() === "";
  const isThere = lines.every((line) => isBlank(line) || present.test(line));
  const marked = lines.map((line) => {
    if (isThere) return line.replace(present, "$1");
    if (!isBlank(line)) return mark + line;
    return name === "quote" ? ">" : line; // which continues the quote, and would be an empty item
  });
  const block = marked.join("\n");
  const from = Math.max(first, start + marked[0].length - lines[0].length);
  return {
    text: text.slice(0, first) + block + (isThere ? "" : gapBefore(text, last)) + text.slice(last),
    start: from,
    end: Math.max(from, first + block.length - (last - end)),
  };
}

/** Return what keeps the line after a list or a quote from continuing it: a blank line. */
function gapBefore(text, last) {
  const next = text.slice(last + 1, endOfLine(text, last + 1));
  const isText = next.trim() !== "" && BEGINNING.exec(next)[0].trim() === "";
  return isText ? "\n" : "";
}

/**
 * Return a text with a block, such as an image, on lines of its own after the selection.
 * @param {string} block
 * @param {Selection} selection
 * @returns {Selection}
 */
export function addBlock(block, { text, end }) {
  const before = text.slice(0, end);
  // A block begins where the line of the selection ends, as in a heading.
  const rest = text.slice(end);
  const line = rest.indexOf("\n");
  const tail = line === -1 ? rest : rest.slice(0, line);
  const above = (before + tail).replace(/\n*$/, "");
  const below = (line === -1 ? "" : rest.slice(line)).replace(/^\n*/, "");
  const start = above ? `${above}\n\n${block}` : block;
  return { text: `${start}\n\n${below}`, start: start.length + 2, end: start.length + 2 };
}
