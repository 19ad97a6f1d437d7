// What went wrong, in a sentence for people.

import { gettext } from "./language.js";

export const FAILED = gettext("Something went wrong. Try again.");

/** A request that failed, with the details of RFC 9457, or anything else that could not be done. */
export class Problem extends Error {
  /**
   * @param {number} status 0 if there was no response
   * @param {string} message a sentence for people
   * @param {import("./fields.js").FieldError[]} [errors]
   */
  constructor(status, message, errors = []) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

/**
 * Return a problem for people, from whatever was thrown.
 * @param {unknown} error
 */
export const problemOf = (error) => (error instanceof Problem ? error : new Problem(0, FAILED));
