"""The audit: who did what, and why."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.columns import cell
from taskqueue.admin.subjects import subject_link
from taskqueue.display import EMPTY, badge, breakable, last_digits
from taskqueue.engine.verbs import VERBS
from taskqueue.models import Audit
from taskqueue.monitoring.searching.qualifiers import is_id
from taskqueue.reason_words import detail_words, reason_words


def entry_words(line: Audit) -> Any:
    """Return the words for the verb; a worker of another version may write an unknown one."""
    verb = VERBS.get((line.noun, line.verb))
    return line.verb if verb is None else verb.entry


def short_subject(subject: str) -> SafeString:
    """Shorten the id of a task or workflow, because the list needs the width."""
    return last_digits(subject) if is_id(subject) else breakable(subject)


class AuditAdmin(ReadOnlyAdmin):
    """The list has one audit entry in each row."""

    has_history = False
    columns = ("at", "actor", "noun", "verb", "subject", "reason", "before")
    list_display = ("id", "at", "actor", "act", "shown_subject", "status_before", "why")
    search_fields = ("subject",)
    search_help_text = _("Search by task id, or by the full name of a queue, worker or schedule.")
    fields = (
        "id", "at", "actor", "act", "subject_link", "status_before", "why", "shown_detail",
    )  # fmt: skip

    def heading(self, row: Audit) -> str:
        return f"{entry_words(row)} {row.subject}".strip()

    act = cell(_("verb"), entry_words)

    @admin.display(description=_("subject"))
    def shown_subject(self, line: Audit) -> SafeString | str:
        return subject_link(self.links, line.noun, line.subject, short_subject) or EMPTY

    @admin.display(description=_("subject"))
    def subject_link(self, line: Audit) -> SafeString | str:
        return subject_link(self.links, line.noun, line.subject) or EMPTY

    why = cell(_("reason"), reason_words, "reason")
    shown_detail = cell(_("detail"), detail_words, "detail")
    status_before = cell(_("before"), badge, "before")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return (queryset.filter(subject=search_term) if search_term else queryset), False
