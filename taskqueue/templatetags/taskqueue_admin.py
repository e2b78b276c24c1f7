"""Template tags and filters of the admin's pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import django
from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from taskqueue import display
from taskqueue.core.uuid7 import uuid7
from taskqueue.monitoring import durations
from taskqueue.reason_words import reason_words

register = template.Library()
for show in (
    display.as_json, display.badge, display.breakable, display.change, display.compact,
    display.is_empty, display.last_digits, display.moment, display.number, display.one_line,
    display.or_empty, display.points, display.preformatted, durations.rounded_age,
    display.seconds_until, display.share, durations.short_duration, display.short_moment,
    display.sparkline, display.status_word,
):  # fmt: skip
    register.filter(show.__name__, show)
register.filter(reason_words)

# The model, the key after `g`, and the title of each page.
PAGES: tuple[tuple[str, str, Any], ...] = (
    ("dashboard", "d", gettext_lazy("Dashboard")),
    ("task", "t", gettext_lazy("Tasks")),
    ("workflow", "l", gettext_lazy("Workflows")),
    ("failure", "f", gettext_lazy("Failures")),
    ("performance", "p", gettext_lazy("Performance")),
    ("queue", "q", gettext_lazy("Queues")),
    ("limit", "m", gettext_lazy("Limits")),
    ("worker", "w", gettext_lazy("Workers")),
    ("schedule", "s", gettext_lazy("Schedules")),
    ("operation", "o", gettext_lazy("Operations")),
    ("incident", "e", gettext_lazy("Alerts")),
    ("endpoint", "h", gettext_lazy("Webhooks")),
    ("audit", "a", gettext_lazy("Audit")),
)
# Models without a page of their own in that row, and the one under which they are shown.
UNDER = {"alertrule": "incident", "lease": "task", "tasklog": "task", "occurrence": "schedule"}
REQUESTS: dict[str, Any] = {
    "quiet": gettext_lazy("asked to be quiet"),
    "stop": gettext_lazy("asked to stop"),
    "kill": gettext_lazy("asked to end at once"),
}


@register.inclusion_tag("admin/taskqueue/includes/nav.html", takes_context=True)
def taskqueue_nav(context: Any, current: str = "") -> dict[str, Any]:
    """Show links to the pages that the user may view, and the help of the keyboard shortcuts.

    `current` is the name of the model whose page this is; without it `opts` tells.
    """
    current = current or getattr(context.get("opts"), "model_name", "")
    current = UNDER.get(current, current)
    viewable = dict(_viewable(context.get("available_apps") or ()))
    return {
        "tabs": [
            {"key": key, "title": title, "url": viewable[name], "is_current": name == current}
            for name, key, title in PAGES
            if name in viewable
        ]
    }


@register.simple_tag
def taskqueue_once() -> SafeString:
    """Show the hidden field by which a button that is pressed twice acts once."""
    return format_html('<input type="hidden" name="once" value="{}">', uuid7())


@register.simple_tag
def taskqueue_search(**words: str) -> str:
    """Return the query of the list of tasks that match these words."""
    from taskqueue.monitoring.searching.search_tokens import search_text

    return urlencode({"q": search_text(**words)})


@register.filter
def of(found: Mapping[str, Any], name: str) -> Any:
    """Return what a mapping has under that name; nothing if there is none."""
    return found.get(name, "")


@register.filter
def asked(request: str) -> Any:
    """Return the pending request of a worker in words."""
    return REQUESTS.get(request, "")


@register.inclusion_tag("admin/taskqueue/includes/breadcrumbs.html", takes_context=True)
def taskqueue_breadcrumbs(context: Any, *trail: Any) -> dict[str, Any]:
    """Show the way from the app to this page: titles and addresses in turn, its title last."""
    return {
        "opts": context["opts"],
        "steps": list(zip(trail[:-1:2], trail[1::2], strict=True)),
        "here": trail[-1],
        # A list from Django 6.1 on: each version's style sheet knows only its own.
        "is_list": django.VERSION >= (6, 1),
    }


def _viewable(apps: Any) -> Iterator[tuple[str, str]]:
    """Yield names and addresses of our models' lists, as the admin gives them to each page."""
    for app in apps:
        for entry in app["models"]:
            model, url = entry.get("model"), entry.get("admin_url")
            if url and model is not None and model._meta.app_label == "taskqueue":
                yield model._meta.model_name, url
