// The language of the page. Texts in modules are the English ones; these functions translate them.

import words from "./catalog.js";

const { lang } = globalThis.document?.documentElement ?? { lang: "en" };
const rules = new Intl.PluralRules(lang);

const UNITS = { gigabyte: 1e9, megabyte: 1e6, kilobyte: 1e3, byte: 1 };

/**
 * Return a text with values in place of names such as `%(count)s`.
 * @param {string} text
 * @param {Record<string, unknown>} values
 */
const fill = (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => String(values[name]));

/**
 * Return a text in the language of the page.
 * @param {string} text
 * @param {Record<string, unknown>} [values]
 */
export const gettext = (text, values = {}) => fill(String(words[text] ?? text), values);

/**
 * Return the text for a number of things, which is `num` in the text.
 * @param {string} one
 * @param {string} other
 * @param {number} number
 * @param {Record<string, unknown>} [values]
 */
export function ngettext(one, other, number, values = {}) {
  const forms = words[one] ?? { one, other };
  const text = forms[rules.select(number)] ?? forms.other;
  return fill(text, { num: number.toLocaleString(lang), ...values });
}

/**
 * Return a number of bytes in words, as the service writes it.
 * @param {number} bytes
 */
export function sizeOf(bytes) {
  const [unit, size] = Object.entries(UNITS).find(([, size]) => bytes >= size) ?? ["byte", 1];
  const unitDisplay = unit === "byte" ? "long" : "short";
  const options = { style: "unit", unit, unitDisplay, maximumFractionDigits: 1 };
  return new Intl.NumberFormat(lang, /** @type {any} */ (options)).format(bytes / size);
}

/**
 * Return names with the words between them, such as "Ada", ", " and "Bo".
 * @param {string[]} names
 * @param {"conjunction" | "unit"} type whether there is an "and" before the last one
 */
export const partsOfList = (names, type) =>
  new Intl.ListFormat(lang, { type })
    .formatToParts(names)
    .map(({ type, value }) => (type === "element" ? { name: value } : { words: value }));

/**
 * Return words in one text, such as "the name, the rules".
 * @param {string[]} parts
 */
export const joined = (parts) => new Intl.ListFormat(lang, { type: "unit" }).format(parts);
