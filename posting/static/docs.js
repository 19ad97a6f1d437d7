"use strict";

// The session cookie is HttpOnly, so signing in through the page's own POST /signin is signing in.
const page = document.getElementById("swagger-ui");

SwaggerUIBundle({
  domNode: page,
  url: page.dataset.document,
  deepLinking: true,
  validatorUrl: null,
});
