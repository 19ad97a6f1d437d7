// Keys that are meant for the page.

import { onEvent } from "./dom.js";

const KEY_OF_INPUT_METHOD = 229;

/**
 * Call a function with the target of each key that is meant for the page. A key that ends a Japanese
 * word, for example, belongs to an input method. Safari says so by the code of the key alone.
 * @param {(target: any, event: any) => unknown} listener
 */
export function onKey(listener) {
  onEvent("keydown", (target, event) => {
    if (!event.isComposing && event.keyCode !== KEY_OF_INPUT_METHOD) listener(target, event);
  });
}
