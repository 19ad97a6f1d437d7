// Times in words, in the language of the page.

import { all } from "./dom.js";

const lang = globalThis.document?.documentElement.lang;
export const locale =
  globalThis.navigator?.languages?.find((each) => each.split("-")[0] === lang) ?? lang;

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
  ["year", 31536000],
  ["month", 2592000],
  ["week", 604800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/**
 * Return the largest unit that fits into a number of seconds, and how many of it there are.
 * @param {number} seconds
 * @returns {[number, Intl.RelativeTimeFormatUnit]}
 */
export function inUnits(seconds) {
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS.at(-1);
  return [Math.trunc(seconds / length), unit];
}

/**
 * Return the seconds from now to a time, in milliseconds. What has happened is never ahead, even if
 * the clock is slow.
 * @param {number} time
 * @param {number} now
 * @param {boolean} isAhead whether it is the time of what will happen
 */
export function secondsTo(time, now, isAhead) {
  const seconds = Math.round((time - now) / 1000);
  return isAhead ? seconds : Math.min(0, seconds);
}

/**
 * Return the day of a time.
 * @param {string} time
 */
export const dateOf = (time) =>
  new Intl.DateTimeFormat(locale, { dateStyle: "medium" }).format(new Date(time));

/**
 * Show the times in a part of the page.
 * @param {ParentNode} part
 */
export function showTimes(part) {
  const words = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
  const exact = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short" });
  for (const time of all(part, "time[datetime]")) {
    const then = new Date(time.dateTime);
    const seconds = secondsTo(then.getTime(), Date.now(), "ahead" in time.dataset);
    time.textContent = words.format(...inUnits(seconds));
    time.title = exact.format(then);
  }
}
