// Lists in the settings, with a row for each item.

import { copyOf, first } from "./dom.js";
import { showTimes } from "./times.js";

/**
 * Return the list with a name.
 * @param {string} name
 */
export const listOf = (name) => first(document, `[data-${name}]`);

/**
 * Show items in the list with a name, after the rows of `former`. A row is a copy of a template.
 * @param {string} name
 * @param {string} template
 * @param {any[]} items
 * @param {(row: any, item: any) => void} fillRow
 * @param {Iterable<Element>} [former]
 */
export function showRows(name, template, items, fillRow, former = []) {
  const list = listOf(name);
  const rows = items.map((item) => {
    const row = copyOf(template);
    fillRow(row, item);
    return row;
  });
  list.replaceChildren(...former, ...rows);
  showTimes(list);
}
