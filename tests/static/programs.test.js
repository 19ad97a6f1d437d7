import assert from "node:assert/strict";
import test from "node:test";

import { programOf } from "../../posting/static/programs.js";

const MOZILLA = "Mozilla/5.0";
const CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0";

for (const [agent, expected] of [
  [`${MOZILLA} (X11; Linux x86_64; rv:149.0) Gecko/20100101 Firefox/149.0`, "Firefox on Linux"],
  [`${MOZILLA} (Linux; Android 15) ${CHROME} Mobile Safari/537.36`, "Chrome on Android"],
  [`${MOZILLA} (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36 Edg/148.0`, "Edge on Windows"],
  [`${MOZILLA} (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36 OPR/130`, "Opera on Windows"],
  [
    `${MOZILLA} (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1`,
    "Safari on iOS",
  ],
  [
    `${MOZILLA} (Macintosh; Intel Mac OS X 10_15_7) Version/19.0 Safari/605.1.15`,
    "Safari on macOS",
  ],
  ["Firefox", "Firefox"],
  ["curl/8.14.1", "curl"],
  ["", "Unknown program"],
]) {
  test(`"${agent}" is ${expected}`, () => {
    assert.equal(programOf(agent), expected);
  });
}
