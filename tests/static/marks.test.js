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
  // The mark is inside of the spaces, and around the text of each line.
  ["bold", "They |weave |cloth.", "They **|weave|** cloth."],
  ["bold", "They| weave\t|cloth.", "They **|weave|**\tcloth."],
  ["bold", "|\none\n|two", "\n**|one|**\ntwo"],
  ["bold", "|one\n\ntwo|", "|**one**\n\n**two**|"],
  ["bold", "|one  \n \ntwo|", "|**one**  \n \n**two**|"],
  ["bold", "|**one**\n\n**two**|", "|one\n\ntwo|"],
  ["bold", "|**one**\n\ntwo|", "**one**\n\n|**two**|"],
  ["italic", "|- one\n- [ ] two\n1. three|", "- |*one*\n- [ ] *two*\n1. *three*|"],
  ["bold", "- o|ne\n- tw|o", "- o|**ne**\n- **tw**|o"],
  ["bold", "|> # one\n> - two|", "> # |**one**\n> - **two**|"],
  ["bold", "|one\\\ntwo|", "|**one**\\\n**two**|"],
  ["bold", "a| |b", "a **||**b"],
  ["bold", "||- one", "- **||**one"],
  ["bold", "**||**", "||"],
  ["bold", "They |**weave**| cloth.", "They |weave| cloth."],
  ["bold", "***|weave|***", "*|weave|*"],
  ["italic", "***|weave|***", "**|weave|**"],
  ["bold", "|*weave*|", "***|weave|***"],
  // Stars between a letter and punctuation are no mark.
  ["bold", "see|(this)|", "see(**|this)|**"],
  ["bold", "|note:|this", "**|note|**:this"],
  ["bold", "see |(this)| now", "see **|(this)|** now"],
  ["bold", "a|[x](y)|", "a**|[x](y)|**"],
  ["link", "a |loom|", "a [loom](|https://|)"],
  ["link", "a |loom |b", "a [loom](|https://|) b"],
  ["link", "||", "[||](https://)"],
  ["link", "[||](https://)", "||"],
  ["link", "|https://example.org/a|", "[||](https://example.org/a)"],
  ["link", "see| www.example.org/a_(b) |now", "see [||](https://www.example.org/a_%28b%29) now"],
  ["link", "[||](https://example.org/a)", "|https://example.org/a|"],
  ["link", "[loom](|https://|)", "|loom|"],
  ["link", "[|loom|](https://example.org/)", "|loom|"],
  ["link", "|[loom](https://example.org/)|", "|loom|"],
  ["link", "|![loom](/images/x)|", "[![loom](/images/x)](|https://|)"],
  ["link", "|one\n\ntwo|", "|[one](https://)\n\n[two](https://)|"],
  ["list", "|one|", "- |one|"],
  ["list", "one\n|two\nthree|\n\nfour", "one\n- |two\n- three|\n\nfour"],
  ["list", "- |one\n- two|", "|one\ntwo|"],
  ["list", "|- one\n  - two|", "|one\n  two|"],
  ["list", "|one\n\ntwo|", "- |one\n\n- two|"],
  ["list", "|one\n|two", "- |one|\n\ntwo"],
  ["list", "zero|\none\n|", "zero\n- |one|\n"],
  ["list", "|one|\n- two", "- |one|\n- two"],
  ["list", "||", "- ||"],
  ["quote", "a |word| here", "> a |word| here"],
  ["quote", "|one\n\ntwo|", "> |one\n>\n> two|"],
  ["quote", "> |one\n>\n> two|", "|one\n\ntwo|"],
  ["quote", "|one|\ntwo", "> |one|\n\ntwo"], // which would be in the quote
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
