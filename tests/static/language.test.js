import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import words from "../../posting/static/catalog.js";
import { gettext, joined, ngettext, sizeOf } from "../../posting/static/language.js";

afterEach(() => {
  for (const text of Object.keys(words)) delete words[text];
});

test("a text without a translation stays as it is", () => {
  assert.equal(gettext("Mails go to %(email)s.", { email: "a@b" }), "Mails go to a@b.");
  assert.equal(ngettext("%(num)s day", "%(num)s days", 1), "1 day");
  assert.equal(ngettext("%(num)s day", "%(num)s days", 1200), "1,200 days");
});

test("a text is translated, with its values in other places", () => {
  words["%(a)s of %(b)s"] = "%(b)s: %(a)s, %(a)s";
  assert.equal(gettext("%(a)s of %(b)s", { a: 1, b: "$&" }), "$&: 1, 1");
});

test("a number has the form of its category", () => {
  words["%(num)s day"] = { one: "%(num)s Tag", other: "%(num)s Tage" };
  assert.equal(ngettext("%(num)s day", "%(num)s days", 1), "1 Tag");
  assert.equal(ngettext("%(num)s day", "%(num)s days", 2), "2 Tage");
});

for (const [bytes, text] of [
  [0, "0 bytes"],
  [1, "1 byte"],
  [999, "999 bytes"],
  [1000, "1 kB"],
  [12_345, "12.3 kB"],
  [12_350, "12.4 kB"],
  [5_242_880, "5.2 MB"],
  [48_000_000_000, "48 GB"],
]) {
  test(`${bytes} bytes are ${text}`, () => assert.equal(sizeOf(bytes), text));
}

test("several words are in one text", () => {
  assert.equal(joined(["Ada", "Bo", "Cy"]), "Ada, Bo, Cy");
});
