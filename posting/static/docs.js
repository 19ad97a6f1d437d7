// To sign in, try out POST /signin: the browser then sends the session cookie with each request.
const page = document.getElementById("swagger-ui");

SwaggerUIBundle({
  domNode: page,
  url: page.dataset.document,
  deepLinking: true,
  validatorUrl: null,
});
