import assert from "node:assert/strict";
import test from "node:test";

import { addBlock, addMark } from "../../posting/static/marks.js";

/** Return a selection from a text in which two bars stand around what is selected. */
function selection(text) {
  const [before, selected, after] = text.split("|");
  const start = before.length;
  return { text: before + selected + after, start, end: start + selected.length };
}

/** Return a selection as such a text. */
const shown = ({ text, start, end }) =>
  `${text.slice(0, start)}|${text.slice(start, end)}|${text.slice(end)}`;

for (const [mark, before, after] of [
  ["bold", "They |weave| cloth.", "They **|weave|** cloth."],
  ["bold", "They **|weave|** cloth.", "They |weave| cloth."],
  ["bold", "||", "**||**"],
  ["italic", "They |weave| cloth.", "They *|weave|* cloth."],
  ["italic", "They *|weave|* cloth.", "They |weave| cloth."],
  ["italic", "They **|weave|** cloth.", "They ***|weave|*** cloth."],
  ["link", "a |loom|", "a [|loom|](https://)"],
  ["list", "|one|", "- |one|"],
  ["list", "one\n|two\nthree|\nfour", "one\n- |two\n- three|\nfour"],
  ["list", "- |one\n- two|", "|one\ntwo|"],
  ["quote", "a |word| here", "> a |word| here"],
]) {
  test(`${mark}: ${JSON.stringify(before)}`, () => {
    assert.equal(shown(addMark(mark, selection(before))), after);
  });
}

for (const [before, after] of [
  ["||", "![](x)\n\n||"],
  ["# On |engines|", "# On engines\n\n![](x)\n\n||"],
  ["||# On engines", "# On engines\n\n![](x)\n\n||"],
  ["one||\n\ntwo", "one\n\n![](x)\n\n||two"],
  ["one\n||", "one\n\n![](x)\n\n||"],
]) {
  test(`an image in ${JSON.stringify(before)}`, () => {
    assert.equal(shown(addBlock("![](x)", selection(before))), after);
  });
}
