// Names of programs.

import { gettext } from "./language.js";

const BROWSERS = [
  [/Firefox/, "Firefox"],
  [/Edg/, "Edge"],
  [/OPR/, "Opera"],
  [/Chrom/, "Chrome"],
  [/Safari/, "Safari"],
];
const SYSTEMS = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Mac/, "macOS"],
  [/Windows/, "Windows"],
  [/Linux/, "Linux"],
];

/**
 * Return a short name for a User-Agent, such as "Firefox on Linux".
 * @param {string} agent
 */
export function programOf(agent) {
  const first = (names) => names.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = first(BROWSERS);
  const system = first(SYSTEMS);
  if (browser && system) return gettext("%(browser)s on %(system)s", { browser, system });
  return browser ?? (agent.split("/")[0] || gettext("Unknown program"));
}
