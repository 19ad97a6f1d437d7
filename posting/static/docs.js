// To sign in, try out POST /signin: the browser then sends the session cookie with each request.
const page = document.getElementById("swagger-ui");

/** Paths are not links, since they are in a button. */
const plugin = ({ React }) => ({
  components: { DeepLink: ({ text }) => React.createElement("span", null, text) },
});

/** Add names of controls, levels of headings and scrolling by keyboard, which Swagger UI lacks. */
function describe() {
  const parts = { ".information-container": "About", ".scheme-container": "Server" };
  for (const [selector, name] of Object.entries(parts))
    for (const part of page.querySelectorAll(`${selector}:not([role])`))
      Object.assign(part, { role: "region", ariaLabel: name });
  for (const select of page.querySelectorAll("select:not([aria-label])"))
    select.ariaLabel = select.id === "servers" ? "Server" : "Choice";
  for (const text of page.querySelectorAll("textarea:not([aria-label])"))
    text.ariaLabel = "Request body";
  for (const code of page.querySelectorAll("pre.microlight:not([tabindex])")) code.tabIndex = 0;
  for (const heading of page.querySelectorAll(":is(h3, h4, h5):not([aria-level])"))
    heading.ariaLevel = Number(heading.tagName[1]) - 1;
}

new MutationObserver(describe).observe(page, { childList: true, subtree: true });
SwaggerUIBundle({
  domNode: page,
  url: page.dataset.document,
  deepLinking: true,
  docExpansion: "none", // with so many operations, Swagger UI would draw only those in view
  plugins: [plugin],
  validatorUrl: null,
});
