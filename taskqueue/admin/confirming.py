"""The page that asks for confirmation, used for tasks, workers, schedules and everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from taskqueue.admin.acts import ReasonField, reason_of
from taskqueue.admin.reports import report
from taskqueue.display import badge

TEMPLATE = "admin/taskqueue/confirm.html"


@dataclass(frozen=True, kw_only=True)
class Question:
    """An action to confirm, in words, and where the answer goes."""

    title: str
    # The address to which the answer is posted, and further posted values.
    url: str
    hidden: Sequence[tuple[str, object]] = ()
    # The text of the button; empty if there is nothing to confirm.
    button: str
    is_grave: bool = True
    # The address of the link for not confirming.
    back: str
    # The name of the row, for the breadcrumbs of this page, and their last part.
    subject: str = ""
    crumb: str = ""
    # The subject of the action, and its consequences.
    about: Sequence[object] = ()


class AskedForm(forms.Form):
    """Only the reason."""

    reason = ReasonField()


def confirm(
    model_admin: Any,
    request: HttpRequest,
    question: Question,
    *,
    template: str = TEMPLATE,
    form: forms.Form | None = None,
    **context: Any,
) -> HttpResponse:
    """Return the page that asks for confirmation. It changes nothing.

    It keeps the reason that was typed before, and the page to return to.
    """
    if form is None:
        form = AskedForm(auto_id="taskqueue-%s", initial={"reason": reason_of(request)})
    return report(
        model_admin, request, template, question.title,
        question=question, form=form, next=request.POST.get("next", ""), **context,
    )  # fmt: skip


def subject_of(status: str, name: str, key: object = "") -> SafeString:
    """Show a row: its status, its name and its id."""
    return format_html(
        "{} <strong>{}</strong>{}",
        badge(status) if status else "",
        name,
        format_html(' <code class="taskqueue-id">{}</code>', key) if key else "",
    )
