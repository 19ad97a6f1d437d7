"""Measurements of the layout of a page, as JavaScript."""

OVERFLOW = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
# Targets that a finger hits, but for links in the middle of a text.
TARGETS = """() => {
  const isInText = (element) => element.closest(".text, .hint") || (
    element.matches("p > a:not(.button, .more)")
    && !element.closest(".meta, .actions, .notice, .title"));
  const found = [];
  for (const element of document.querySelectorAll("a, button, summary, input, textarea, .button")) {
    if (!element.checkVisibility({visibilityProperty: true}) || isInText(element)) continue;
    if (element.closest(".for-listeners, .skip") || element.type === "radio") continue;
    const {width, height} = (element.closest(".posts article") && element.closest("h2")
      ? element.closest("article") : element).getBoundingClientRect();
    const isShortName = element.closest(".meta") && element.matches("a");
    if (height < 44 || (width < 44 && !isShortName))
      found.push([element.outerHTML.slice(0, 200), Math.round(width), Math.round(height)]);
  }
  return found;
}"""
# The left and right edge of what each visible action says.
ACTIONS = """() => [...document.querySelectorAll(".post .actions > *")]
  .filter((element) => element.checkVisibility())
  .map((element) => {
    const range = new Range();
    range.selectNodeContents(element.querySelector("summary") ?? element);
    const {left, right} = range.getBoundingClientRect();
    return [left, right];
  })"""
SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) sum += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 500);
})"""
