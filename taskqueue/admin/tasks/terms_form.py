"""The form of a task's terms: only what the person changed is sent, and to nobody's loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue import control
from taskqueue.admin.schedules.fields import SpanField, SpanWidget
from taskqueue.admin.tasks.task_form import TaskForm
from taskqueue.models import Task

TERMS = ("priority", "queue_name", "max_attempts", "timeout")


class UpdateForm(TaskForm):
    """Other terms; those that run already go on by the old ones.

    `shown` holds what the page showed: where somebody else has changed the same term since, nothing
    is changed before the person has seen it.
    """

    submit = gettext_lazy("Change")
    done = gettext_lazy("Changed.")

    priority = forms.IntegerField(
        label=gettext_lazy("Priority"), min_value=-100, max_value=100,
        help_text=gettext_lazy("-100 to 100; higher ones first."),
    )  # fmt: skip
    queue_name = forms.CharField(label=gettext_lazy("Queue"), max_length=100, strip=False)
    max_attempts = forms.IntegerField(
        label=gettext_lazy("Failures at most"), min_value=1, max_value=2**31 - 1,
        help_text=gettext_lazy("After so many it fails for good."),
    )  # fmt: skip
    timeout = SpanField(
        label=gettext_lazy("Time limit"), help_text=gettext_lazy("Of each attempt. Empty: none.")
    )
    shown = forms.CharField(required=False, widget=forms.HiddenInput)

    def initial_of(self, task: Task, user: Any) -> dict[str, Any]:
        now = terms_of(task)
        return {**now, "shown": _as_text(now)}

    def clean_shown(self) -> dict[str, Any]:
        """The terms that the page showed; those of now where it tells none."""
        text = self.cleaned_data["shown"]
        if not text:
            return self._now
        try:
            found = json.loads(text)
            shown = {name: found[name] for name in TERMS}
            if shown["timeout"] is not None:
                shown["timeout"] = timedelta(seconds=shown["timeout"])
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise ValidationError(_("This is not what a page showed.")) from None
        return shown

    def clean(self) -> dict[str, Any]:
        """Only what differs from what was shown is changed: the rest may be somebody else's."""
        if "shown" in self.errors:
            raise ValidationError(_("The page is not whole. Load it anew."))
        if self.errors:
            return self.cleaned_data
        shown, now = self.cleaned_data["shown"], self._now
        lost = [name for name in self.changes if now[name] not in (shown[name], self._given(name))]
        if lost:
            self._show_anew()
            for name in lost:
                told = _("Somebody else has changed this meanwhile, to %(now)s.")
                self.add_error(name, told % {"now": _words(now[name])})
        elif not self.changes:
            raise ValidationError(_("Nothing differs from what it is."))
        return self.cleaned_data

    @property
    def changes(self) -> Mapping[str, Any]:
        """What the verb takes."""
        shown = self.cleaned_data["shown"]
        return {name: self._given(name) for name in TERMS if self._given(name) != shown[name]}

    def act(self, **who: Any) -> UUID:
        seen = {_column(name): getattr(self.task, _column(name)) for name in self.changes}
        control.update(self.task.pk, self.changes, seen=seen, **who)
        return self.task.pk

    @property
    def _now(self) -> dict[str, Any]:
        return {name: self.initial[name] for name in TERMS}

    def _given(self, name: str) -> Any:
        return self.cleaned_data[name]

    def _show_anew(self) -> None:
        """Show what is so now, and of the person's own changes, theirs."""
        kept = {**self._now, **self.changes}
        data: Any = self.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
        for name in TERMS:
            data[name] = kept[name]
        for place, part in enumerate(SpanWidget().decompress(kept["timeout"])):
            data[f"timeout_{place}"] = "" if part is None else str(part)
        data["shown"] = _as_text(self._now)
        self.data = data


def terms_of(task: Task) -> dict[str, Any]:
    """The terms of a task that the form has fields for."""
    seconds = task.options.get("timeout")
    return {
        "priority": task.priority,
        "queue_name": task.queue_name,
        "max_attempts": task.max_attempts,
        "timeout": timedelta(seconds=seconds) if isinstance(seconds, int | float) else None,
    }


def _column(name: str) -> str:
    """Where the term is stored."""
    return "options" if name == "timeout" else name


def _as_text(terms: Mapping[str, Any]) -> str:
    span = terms["timeout"]
    return json.dumps({**terms, "timeout": None if span is None else span.total_seconds()})


def _words(value: Any) -> str:
    return _("none") if value is None else str(value)
