import assert from "node:assert/strict";
import test from "node:test";

import { isAnimated } from "../../posting/static/animations.js";

const bytes = (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const chunk = (name, content = "") =>
  `${String.fromCharCode(0, 0, 0, content.length)}${name}${content}CRC.`;
const png = (...chunks) => `\x89PNG\r\n\x1a\n${chunks.join("")}`;

test("animations of each format are found", () => {
  for (const file of [
    "GIF89a",
    "RIFF____WEBPVP8X____\x02___",
    "RIFF____WEBPVP8X____\x3e___",
    "\0\0\0\x1cftypavis\0\0\0\0avifmsf1",
    "\0\0\0\x1cftypavif\0\0\0\0mif1avis",
    png(chunk("IHDR", "x".repeat(13)), chunk("iCCP", "acTL"), chunk("acTL", "12345678")),
  ])
    assert.equal(isAnimated(bytes(file)), true, file);
});

test("still images are no animations", () => {
  for (const file of [
    "",
    "\xff\xd8\xff\xe0",
    "RIFF____WEBPVP8X____\x10___",
    "RIFF____WEBPVP8 ____\x02___",
    "\0\0\0\x18ftypavif\0\0\0\0mif1miafavis",
    "\0\0\0\0ftypavif",
    png(chunk("IHDR", "x".repeat(13)), chunk("iTXt", "acTL"), chunk("IDAT"), chunk("acTL")),
    png(chunk("IHDR", "x".repeat(13))),
    "\x89PNG",
  ])
    assert.equal(isAnimated(bytes(file)), false, file);
});
