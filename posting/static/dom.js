// Elements of the page. Their kinds are known from the templates, not to the type checker.

/**
 * Return the elements in a part of the page that a selector names.
 * @param {ParentNode} part
 * @param {string} selector
 * @returns {any[]}
 */
export const all = (part, selector) => [...part.querySelectorAll(selector)];

/**
 * Return the first of these elements, or null.
 * @param {ParentNode} part
 * @param {string} selector
 * @returns {any}
 */
export const first = (part, selector) => part.querySelector(selector);

/**
 * Return a copy of what a template contains: one element.
 * @param {string} id
 * @returns {any}
 */
export const copyOf = (id) => first(document, `#${id}`).content.cloneNode(true).firstElementChild;

/**
 * Call a function with the target of each event of a type.
 * @param {string} type
 * @param {(target: any, event: any) => unknown} listener
 */
export function onEvent(type, listener) {
  document.addEventListener(type, (event) => listener(event.target, event));
}
