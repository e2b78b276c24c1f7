"""The API's own documentation: its schema for programs, and Swagger UI for people.

drf-spectacular has one set of settings for the process. While the document is made, once, they are
those of this API, whatever else the project documents.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

from django.apps import apps
from django.conf import settings
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.template import Engine
from django.urls import include, path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.describing import HAS_SCHEMA
from taskqueue.api.fields import Strict
from taskqueue.api.problems import Problem
from taskqueue.conf import get_settings
from taskqueue.core import __version__

DESCRIPTION = """\
Everything that the admin of taskqueue can do, for other languages and for scripts.

* Bodies are JSON (`application/json`, UTF-8). Unknown fields and parameters are refused.
* Times are ISO 8601 with an offset; durations are seconds.
* Errors are `application/problem+json` (RFC 9457): `code` is for programs, `errors` points to each
  mistake.
* Every request that changes something may have an `Idempotency-Key`: repeated within a day, it
  is answered as the first time, and is not carried out again.
* Answers with an `ETag` become 304 where `If-None-Match` has it. With `If-Match` nothing is changed
  that has changed meanwhile (412).
* Too many requests are answered with 429; `Retry-After` says when to try again.
* Answers may get more fields in later versions: ignore unknown fields.
"""
TAGS = {
    "tasks": "Enqueue, view, wait for, change and end tasks.",
    "operations": "Actions on many tasks in the background.",
    "searches": "Saved searches for tasks.",
    "queues": "Queues of tasks.",
    "pauses": "Pauses of definitions, and of everything.",
    "webhooks": "Endpoints that receive events, and their deliveries.",
    "limits": "How many tasks run at once, and how many start in a period.",
    "workers": "The processes that run tasks.",
    "schedules": "Enqueue tasks by rules in time.",
    "workflows": "Tasks that depend on each other.",
    "groups": "Events that are collected for one task.",
    "task types": "Tasks that may be enqueued, and their arguments.",
    "events": "What has changed, as it happens.",
    "alerts": "What is wrong, and the rules that look for it.",
    "audit": "Actions of people.",
    "stats": "Counts, rates and durations.",
    "health": "Probes, metrics and the root.",
}
SCHEMA_MISSING = (
    "The schema needs the package drf-spectacular, which is not installed. Install it with"
    " 'django-taskqueue[api]'."
)
_lock = threading.Lock()


def document(server: str) -> dict[str, Any]:
    """Return the document of an API with that root path; empty for the host's root.

    Raises 501 without drf-spectacular.
    """
    if not HAS_SCHEMA:
        raise Problem(501, "schema_not_installed", SCHEMA_MISSING)
    with _lock:
        schema = _made(_authentication())
    return {**schema, "servers": [{"url": server}]} if server else schema


def _authentication() -> Hashable:
    return (get_settings().API_AUTHENTICATION, *api_settings.DEFAULT_AUTHENTICATION_CLASSES)


@lru_cache(maxsize=1)
def _made(authentication: Hashable) -> dict[str, Any]:
    """Make the document, once in a process and for each choice of authentication."""
    return generated(are_warnings_told=False)


@lru_cache(maxsize=4)
def _as_yaml(server: str, authentication: Hashable) -> bytes:
    """Write the document as YAML, which takes seconds."""
    from drf_spectacular.renderers import OpenApiYamlRenderer

    renderer: Any = OpenApiYamlRenderer()
    return bytes(renderer.render(document(server)))


def generated(*, are_warnings_told: bool) -> dict[str, Any]:
    """Return the document without the address of the server."""
    from drf_spectacular.generators import SchemaGenerator
    from drf_spectacular.settings import SPECTACULAR_DEFAULTS, patched_settings

    kept = ("SERVE_", "SWAGGER_", "REDOC_", "DEFAULT_GENERATOR_CLASS")
    ours = {
        "OAS_VERSION": "3.1.1",
        "TITLE": "taskqueue",
        "VERSION": __version__,
        "DESCRIPTION": DESCRIPTION,
        "TAGS": [{"name": name, "description": text} for name, text in TAGS.items()],
        "COMPONENT_SPLIT_REQUEST": True,
        "SCHEMA_PATH_PREFIX": "",
        "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enum_id_removal"],
        "DISABLE_ERRORS_AND_WARNINGS": not are_warnings_told,
    }
    plain = {
        name: value for name, value in SPECTACULAR_DEFAULTS.items() if not name.startswith(kept)
    }
    with patched_settings({**plain, **ours}):
        generator: Any = SchemaGenerator
        patterns = [path("", include("taskqueue.api.urls"))]
        schema: dict[str, Any] = generator(patterns=patterns).get_schema(public=True)
    return schema


SIDECAR = "drf_spectacular_sidecar"
SWAGGER_MISSING = (
    "The page needs the files of Swagger UI. Install 'django-taskqueue[api]', and add"
    f" '{SIDECAR}' to INSTALLED_APPS."
)
# Its own template, because the project may have no templates.
TEMPLATES = Engine(app_dirs=True, libraries={"static": "django.templatetags.static"})


class Format(Strict):
    """The format of the document."""

    format = serializers.ChoiceField(choices=["json", "yaml"], required=False, default="json")


class SchemaDocument(ApiView):
    """The OpenAPI document, for every authenticated user: it contains no data."""

    needs = {"GET": ()}
    schema: Any = None

    @endpoint("", answers={}, query=Format)
    def get(self, request: Request) -> Response | HttpResponse:
        """Return it as JSON, or as YAML with `?format=yaml`."""
        root = self.address("schema").removesuffix("/schema/")
        if self.parameters["format"] == "yaml":
            document(root)  # Raises 501.
            return HttpResponse(_as_yaml(root, _authentication()), content_type="application/yaml")
        return self.shown(document(root))


class Docs(ApiView):
    """Swagger UI."""

    needs = {"GET": ()}
    schema: Any = None

    @endpoint("", answers={})
    def get(self, request: Request) -> HttpResponse:
        """Return the page."""
        if not apps.is_installed(SIDECAR):
            raise Problem(501, "docs_not_installed", SWAGGER_MISSING)
        # Without drf-spectacular the page would be empty, so this is reported at once.
        document("")
        context = {
            "schema": self.address("schema"),
            "header": settings.CSRF_HEADER_NAME.removeprefix("HTTP_").replace("_", "-"),
            "token": get_token(request._request),
        }
        return HttpResponse(TEMPLATES.render_to_string("taskqueue/api_docs.html", context))
