"""Addresses of what audit entries and alerts are about."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.utils.html import format_html
from django.utils.safestring import SafeString

from taskqueue.admin.links import Links
from taskqueue.core.alerts import KINDS as DETAILS
from taskqueue.core.alerts import AlertKind, AlertScope
from taskqueue.display import breakable
from taskqueue.monitoring.searching.qualifiers import is_id

# By noun: lists that find a row by its name, with the parameter that has the name.
LISTS = {
    "alert": ("incident_changelist", "q"),
    "alert_rule": ("alertrule_changelist", "q"),
    "definition": ("performance_changelist", "name"),
    "group": ("queue_groups", "q"),
    "limit": ("limit_changelist", "q"),
    "queue": ("queue_named", "name"),
    "schedule": ("schedule_changelist", "q"),
    "worker": ("worker_changelist", "q"),
    "workflow": ("workflow_changelist", "q"),
}
# Nouns whose rows have their id as subject; a page of a row that is gone says so.
WITH_ID = ("operation", "task", "workflow")


def subject_url(links: Links, noun: str, subject: str) -> str:
    """Return the address of a page with the subject; "" if there is none."""
    if noun in WITH_ID and is_id(subject):
        return links.url(f"{noun}_change", subject)
    if noun == "webhook":
        return links.url("endpoint_change", subject) if subject.isdigit() else ""
    if noun not in LISTS or not subject:
        return ""
    page, parameter = LISTS[noun]
    return f"{links.url(page)}?{urlencode({parameter: subject})}"


def subject_link(
    links: Links, noun: str, subject: str, shown: Callable[[str], SafeString | str] = breakable
) -> SafeString | str:
    """Return the subject with a link to its page, or alone."""
    url = subject_url(links, noun, subject)
    return format_html('<a href="{}">{}</a>', url, shown(subject)) if url else shown(subject)


def alert_url(links: Links, kind: str, subject: str) -> str:
    """Return the address of what an alert of that kind is about; "" if there is no page.

    Subjects of kinds with several scopes may be names of tasks, with an error besides.
    """
    if is_id(subject):
        return subject_url(links, "task", subject)
    scopes = _scopes(kind)
    return subject_url(links, scopes[0].value, subject) if len(scopes) == 1 else ""


def example_url(links: Links, kind: str, example: str) -> str:
    """Return the address of the task or workflow that an alert has as an example."""
    noun = "workflow" if AlertScope.WORKFLOW in _scopes(kind) else "task"
    return subject_url(links, noun, example) if is_id(example) else ""


def _scopes(kind: str) -> tuple[AlertScope, ...]:
    return DETAILS[AlertKind(kind)].scopes if kind in set(AlertKind) else ()
