"""Showing arguments and results: as JSON, or with the project's own function."""

from __future__ import annotations

import json
from typing import Any, Literal

from django.utils.html import format_html
from django.utils.module_loading import import_string
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from taskqueue.conf import get_settings
from taskqueue.display import one_line, preformatted

# Longer values are collapsed.
LONGEST_OPEN, MOST_OPEN_LINES = 2_000, 40
LONGEST_ERROR = 300


def formatted(name: str, what: Literal["arguments", "result", "part"], value: Any) -> SafeString:
    """Show a value of a task of that name with the project's `FORMATTER`, or as JSON.

    Its text is escaped, and its errors are shown above the JSON: a page that people open because
    something is wrong must not fail itself.
    """
    path = get_settings().FORMATTER
    if not path:
        return folded_json(value)
    as_json = folded_json(value)
    try:
        text = import_string(path)(name, what, value)
        if text is None:
            return as_json
        if not isinstance(text, str):
            raise TypeError(f"{path} returned {type(text).__name__}, not text or None.")
    except Exception as error:  # The project's code may raise anything.
        told = one_line(f"FORMATTER: {type(error).__name__}: {error}", LONGEST_ERROR)
        return format_html('<p class="errornote">{}</p>{}', str.__str__(told), as_json)
    # Not even if the project has marked it as safe: it may contain arguments.
    return folded(str.__str__(text))


def folded_json(value: Any) -> SafeString:
    """Show a value as indented JSON; a long one is collapsed."""
    return folded(json.dumps(value, indent=2, ensure_ascii=False))


def folded(text: str) -> SafeString:
    """Show a text with its line breaks; a long one is collapsed."""
    if len(text) <= LONGEST_OPEN and text.count("\n") < MOST_OPEN_LINES:
        return preformatted(text)
    size = ngettext("%(count)s character", "%(count)s characters", len(text)) % {
        "count": f"{len(text):,}",
    }  # fmt: skip
    return format_html("<details><summary>{}</summary>{}</details>", size, preformatted(text))
