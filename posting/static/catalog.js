// The words of the page's language, by the English texts. The service replaces this module in other
// languages.

/** @type {Record<string, any>} a text, or the forms of one by the categories of CLDR */
export default {};
