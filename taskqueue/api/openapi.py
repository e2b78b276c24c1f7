"""The OpenAPI document of this API, whatever else the project documents and how.

drf-spectacular has its settings in one place of the process: they are ours while the document is
made, once.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any

from django.urls import include, path
from rest_framework.settings import api_settings

from taskqueue.api.describing import HAS_SCHEMA
from taskqueue.api.problems import Problem
from taskqueue.conf import get_settings
from taskqueue.core import __version__

DESCRIPTION = """\
Everything that the admin of taskqueue can do, for other languages and for scripts.

* Bodies are JSON (`application/json`, UTF-8); what an address does not know is refused.
* Moments are ISO 8601 with their offset; durations are seconds.
* Errors are `application/problem+json` (RFC 9457): `code` is for programs, `errors` points to each
  mistake.
* `Idempotency-Key` may stand in every request that changes something: sent again within a day, it
  is answered as at first, and nothing is done again.
* What bears an `ETag` is answered with 304 where `If-None-Match` has it; with `If-Match` nothing is
  changed that has changed meanwhile (412).
* Who asks too often is told by 429 when to come again (`Retry-After`).
* Answers may get further fields: read those that you know.
"""
TAGS = {
    "tasks": "One call each: enqueued, looked at, waited for, changed, ended.",
    "operations": "One verb done to many tasks in the background.",
    "queues": "The lanes that tasks wait in.",
    "workers": "The processes that run tasks.",
    "schedules": "Rules in time that enqueue tasks.",
    "task types": "What may be enqueued, and with which arguments.",
    "audit": "Who did what by hand.",
    "stats": "Figures of the whole.",
    "health": "For machines that watch over machines.",
}
MISSING = (
    "The schema needs the package drf-spectacular, which is not installed. Install it with"
    " 'django-taskqueue[api]'."
)
_lock = threading.Lock()
_made: dict[Hashable, dict[str, Any]] = {}
_written: dict[tuple[int, str], bytes] = {}
MOST_WRITTEN = 4


def document(server: str) -> dict[str, Any]:
    """The document, for an API whose root is at that path; empty: that of the host.

    Made once by each process, and for each choice of authentication. Raises 501 without
    drf-spectacular.
    """
    if not HAS_SCHEMA:
        raise Problem(501, "schema_not_installed", MISSING)
    key = (get_settings().API_AUTHENTICATION, *api_settings.DEFAULT_AUTHENTICATION_CLASSES)
    with _lock:
        if key not in _made:
            _made.clear()
            _written.clear()
            _made[key] = generated(are_warnings_told=False)
        found = _made[key]
    return {**found, "servers": [{"url": server}]} if server else found


def document_as_yaml(server: str) -> bytes:
    """The same as YAML, which takes seconds to write: once, too."""
    found = document(server)
    from drf_spectacular.renderers import OpenApiYamlRenderer

    key = id(found["paths"]), server
    with _lock:
        if key not in _written:
            if len(_written) >= MOST_WRITTEN:
                _written.clear()
            renderer: Any = OpenApiYamlRenderer()
            _written[key] = renderer.render(found)
        return _written[key]


def generated(*, are_warnings_told: bool) -> dict[str, Any]:
    """The document, without saying where the API is."""
    from drf_spectacular.generators import SchemaGenerator

    with _our_settings(are_warnings_told):
        patterns = [path("", include("taskqueue.api.urls"))]
        generator: Any = SchemaGenerator
        found: dict[str, Any] = generator(patterns=patterns).get_schema(public=True)
    return found


def _our_settings(are_warnings_told: bool) -> AbstractContextManager[None]:
    from drf_spectacular.settings import SPECTACULAR_DEFAULTS, patched_settings

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
    kept = ("SERVE_", "SWAGGER_", "REDOC_")
    plain: dict[str, Any] = {
        name: value
        for name, value in SPECTACULAR_DEFAULTS.items()
        if not name.startswith(kept) and name != "DEFAULT_GENERATOR_CLASS"
    }
    settings: AbstractContextManager[None] = patched_settings({**plain, **ours})
    return settings
