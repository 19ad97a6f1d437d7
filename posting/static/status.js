// One line at the bottom of the page says what has happened, to eyes and to screen readers.

import { first } from "./dom.js";

const SECONDS = 8;
const NEXT = "posting:status"; // in sessionStorage: what the next page says

let timer = 0;

/**
 * Say something, perhaps with an offer beside it.
 * @param {string} text
 * @param {Element} [offer]
 */
export function say(text, offer) {
  const place = first(document, "#status");
  place.replaceChildren(text, ...(offer ? [" ", offer] : []));
  clearTimeout(timer);
  timer = setTimeout(() => hide(place), SECONDS * 1000);
}

/** Hide the line, unless the reader is about to use what is in it. */
function hide(place) {
  if (place.matches(":hover, :focus-within")) timer = setTimeout(() => hide(place), 1000);
  else place.replaceChildren();
}

/**
 * Let the page to which this one leads say something.
 * @param {string} text
 */
export function sayNext(text) {
  try {
    sessionStorage.setItem(NEXT, text);
  } catch {
    // Then it stays unsaid.
  }
}

/** Say what the page before wanted to be said, with the focus on the heading of this page. */
export function sayWhatIsLeft() {
  try {
    const text = sessionStorage.getItem(NEXT);
    sessionStorage.removeItem(NEXT);
    if (text) say(text);
    if (text && !location.hash) focusHeading();
  } catch {
    // Nothing is left where nothing can be stored.
  }
}

function focusHeading() {
  const heading = first(document, "h1");
  heading.tabIndex = -1;
  heading.focus();
}
