// The marks of Markdown that the bar over a text adds.

/** @typedef {{text: string, start: number, end: number}} Selection */

const AROUND = { bold: ["**", "**"], italic: ["*", "*"], link: ["[", "](https://)"] };
const BEFORE = { list: "- ", quote: "> " };

/**
 * Return a text and its selection with a mark added; a mark that is there already is removed.
 * @param {string} mark
 * @param {Selection} selection
 * @returns {Selection}
 */
export function addMark(mark, { text, start, end }) {
  if (mark in BEFORE) return markLines(BEFORE[mark], { text, start, end });
  const [before, after] = AROUND[mark];
  const isThere = text.slice(0, start).endsWith(before) && text.slice(end).startsWith(after);
  if (isThere && !(mark === "italic" && text.slice(0, start).endsWith("**"))) {
    return {
      text:
        text.slice(0, start - before.length) +
        text.slice(start, end) +
        text.slice(end + after.length),
      start: start - before.length,
      end: end - before.length,
    };
  }
  return {
    text: text.slice(0, start) + before + text.slice(start, end) + after + text.slice(end),
    start: start + before.length,
    end: end + before.length,
  };
}

/** Begin each line of a selection with a mark, or none if all do so. */
function markLines(mark, { text, start, end }) {
  const first = text.lastIndexOf("\n", start - 1) + 1;
  const next = text.indexOf("\n", end);
  const last = next === -1 ? text.length : next;
  const lines = text.slice(first, last).split("\n");
  const isThere = lines.every((line) => line.startsWith(mark));
  const marked = lines.map((line) => (isThere ? line.slice(mark.length) : mark + line)).join("\n");
  const change = isThere ? -mark.length : mark.length;
  return {
    text: text.slice(0, first) + marked + text.slice(last),
    start: Math.max(first, start + change),
    end: first + marked.length - (last - end),
  };
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
