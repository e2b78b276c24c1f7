"""The span of time that a page looks back on, and links to the others."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

SPAN_TITLES = {"hour": _("Last hour"), "day": _("Last day"), "week": _("Last week")}


def span_of(request: HttpRequest) -> str:
    """The one that the address names; the last hour where it names none that there is."""
    named = request.GET.get("span", "")
    return named if named in SPAN_TITLES else "hour"


def span_tabs(span: str, **kept: str) -> list[dict[str, Any]]:
    """A link for each span; `kept` is what else the address says."""
    return [
        {"title": title, "url": f"?{urlencode({'span': each, **kept})}", "is_current": each == span}
        for each, title in SPAN_TITLES.items()
    ]
