// Swagger UI over the schema that the page names; requests by a session carry the CSRF token.
"use strict";

(() => {
  const place = document.getElementById("swagger-ui");

  window.SwaggerUIBundle({
    domNode: place,
    url: place.dataset.schema,
    presets: [window.SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    deepLinking: true,
    validatorUrl: null,
    requestInterceptor: (request) => {
      if (!["GET", "HEAD", undefined].includes(request.method)) {
        request.headers[place.dataset.header] = place.dataset.token;
      }
      return request;
    },
  });
})();
