// Lists with a row for each item, such as those in the settings.

import { onAction } from "./actions.js";
import { request } from "./api.js";
import { all, copyOf, first } from "./dom.js";
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

/**
 * Return a function that shows the first page of the list with a name. The button with the action
 * `more-{name}` adds the next one.
 * @param {string} name
 * @param {string} template
 * @param {string} url
 * @param {(row: any, item: any) => void} fillRow
 */
export function listInPages(name, template, url, fillRow) {
  const rows = () => all(listOf(name), ":scope > li");

  async function showPage(from, former) {
    const { data, next } = await request("GET", from);
    showRows(name, template, data, fillRow, former);
    const button = first(document, `[data-action=more-${name}]`);
    button.dataset.url = next ?? "";
    button.hidden = !next;
  }

  onAction(`more-${name}`, async (button) => {
    const former = rows();
    await showPage(button.dataset.url, former);
    rows()[former.length]?.focus();
  });

  return () => showPage(url, []);
}
