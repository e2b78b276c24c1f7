"""How values look on the admin's pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.admin.local_time import local_time
from taskqueue.admin.naming import moment_word

EMPTY = SafeString("-")
"""What stands where there is nothing."""
LONGEST = 20_000
"""Characters of one value on a page."""

Shown = Callable[[Any], Any]


def moments(*names: str) -> tuple[Any, ...]:
    """Columns for points in time, to the second: a task's life is shorter than Django's minutes."""
    return tuple(map(moment_column, names))


def moment_column(name: str) -> Shown:
    """A column for a point in time."""

    @admin.display(description=moment_word(name))
    def show(row: Any) -> SafeString:
        return moment(getattr(row, name))

    show.__name__ = name
    return show


def moment(value: datetime | None) -> SafeString:
    """A point in time in the current time zone, to the second; the tooltip says it exactly."""
    if value is None:
        return EMPTY
    local = local_time(value)
    return format_html(
        '<time class="taskqueue-time" datetime="{0}" title="{0}"><span>{1}</span> {2}</time>',
        local.isoformat(),
        local.strftime("%Y-%m-%d"),
        local.strftime("%H:%M:%S"),
    )


def as_json(value: Any) -> SafeString:
    """A value as indented JSON, cut where it is long."""
    return preformatted(json.dumps(value, indent=2, ensure_ascii=False))


def preformatted(text: str) -> SafeString:
    """Text with its own line breaks, cut where it is long."""
    if not text:
        return EMPTY
    if len(text) > LONGEST:
        more = _("%(number)s more characters") % {"number": f"{len(text) - LONGEST:,}"}
        text = f"{text[:LONGEST]}\n… [{more}]"
    return format_html('<pre class="taskqueue-text">{}</pre>', text)


def breakable(name: str) -> SafeString:
    """A dotted name that a browser may break after its dots, and not within a word."""
    return format_html_join(SafeString(".<wbr>"), "{}", ((part,) for part in name.split(".")))
