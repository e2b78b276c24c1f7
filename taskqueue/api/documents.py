"""The API's own documentation: its schema for programs, and a page of it for people."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.conf import settings
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.templatetags.static import static
from django.utils.html import format_html
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.api.addresses import address
from taskqueue.api.base import ApiView
from taskqueue.api.fields import Strict
from taskqueue.api.openapi import document, document_as_yaml
from taskqueue.api.problems import Problem

SIDECAR = "drf_spectacular_sidecar"
MISSING = (
    "The page needs the files of Swagger UI. Install 'django-taskqueue[api]', and add"
    f" '{SIDECAR}' to INSTALLED_APPS."
)
YAML = "application/yaml"
# No script and no style stands inline, so that it works under a strict Content-Security-Policy.
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>taskqueue API</title>
<link rel="icon" href="{icon}">
<link rel="stylesheet" href="{style}">
<link rel="stylesheet" href="{own_style}">
<script src="{bundle}" defer></script>
<script src="{own_script}" defer></script>
</head>
<body>
<noscript>This page needs JavaScript. The schema is at <a href="{schema}">{schema}</a>.</noscript>
<main id="swagger-ui" data-schema="{schema}" data-header="{header}" data-token="{token}"></main>
</body>
</html>
"""


class Format(Strict):
    """The form of the document."""

    format = serializers.ChoiceField(choices=["json", "yaml"], required=False, default="json")


class SchemaDocument(ApiView):
    """The OpenAPI document, for anybody who is known: it holds what the code says, and no data."""

    needs = {"GET": ()}
    schema: Any = None

    def get(self, request: Request) -> Response | HttpResponse:
        """As JSON, or as YAML with `?format=yaml`."""
        given = self.validated_query(request, Format)["format"]
        root = address(request, "schema").removesuffix("/schema/")
        if given == "yaml":
            return HttpResponse(document_as_yaml(root), content_type=YAML)
        return self.shown(request, document(root))


class Docs(ApiView):
    """Swagger UI."""

    needs = {"GET": ()}
    schema: Any = None

    def get(self, request: Request) -> HttpResponse:
        """The page."""
        self.validated_query(request)
        if not apps.is_installed(SIDECAR):
            raise Problem(501, "docs_not_installed", MISSING)
        document("")  # Without drf-spectacular the page would be empty: that is told at once.
        page = format_html(
            PAGE,
            icon=_file("favicon-32x32.png"),
            style=_file("swagger-ui.css"),
            bundle=_file("swagger-ui-bundle.js"),
            own_style=static("taskqueue/api_docs.css"),
            own_script=static("taskqueue/api_docs.js"),
            schema=address(request, "schema"),
            header=settings.CSRF_HEADER_NAME.removeprefix("HTTP_").replace("_", "-"),
            token=get_token(request._request),
        )
        return HttpResponse(page)


def _file(name: str) -> str:
    return static(f"{SIDECAR}/swagger-ui-dist/{name}")
