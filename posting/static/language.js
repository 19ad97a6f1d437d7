// The language of the page. Texts in modules are the English ones; these functions translate them.

const { lang } = globalThis.document?.documentElement ?? { lang: "en" };

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
export const gettext = (text, values = {}) => fill(text, values);

/**
 * Return the text for a number of things, which is `num` in the text.
 * @param {string} one
 * @param {string} other
 * @param {number} number
 * @param {Record<string, unknown>} [values]
 */
export function ngettext(one, other, number, values = {}) {
  return fill(number === 1 ? one : other, { num: number.toLocaleString(lang), ...values });
}
