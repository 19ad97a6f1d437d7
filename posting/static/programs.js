// Names of programs.

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
  if (browser) return system ? `${browser} on ${system}` : browser;
  return agent.split("/")[0] || "Unknown program";
}
