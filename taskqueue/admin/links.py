"""Addresses of the task queue's pages within one admin site; a project may have several sites."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import register_converter, reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.display import EMPTY
from taskqueue.engine.connections import database_alias
from taskqueue.models import Occurrence, Task, Workflow
from taskqueue.monitoring.searching.search_tokens import search_text


@dataclass(frozen=True)
class Links:
    """Build addresses, and links to them, within one admin site."""

    site: str

    def url(self, page: str, *args: object) -> str:
        """Return the address of a page by its name, such as `url("task_act", task.pk)`."""
        return reverse(f"admin:taskqueue_{page}", args=args, current_app=self.site)

    def redirect(self, page: str, *args: object) -> HttpResponseRedirect:
        """Redirect to a page by its name."""
        return HttpResponseRedirect(self.url(page, *args))

    @property
    def failed_workflows(self) -> str:
        """The address of the workflows that failed."""
        status = urlencode({"status__exact": WorkflowStatus.FAILED.value})
        return f"{self.url('workflow_changelist')}?{status}"

    def to_row(self, model: type[Model], key: object, text: object) -> SafeString:
        """Link to a row's page."""
        url = self.url(f"{model._meta.model_name}_change", key)
        return format_html('<a href="{}">{}</a>', url, text)

    def to_list(self, model: type[Model], text: object, **filters: object) -> SafeString:
        """Link to the rows that match the filters."""
        url = self.url(f"{model._meta.model_name}_changelist")
        return format_html('<a href="{}?{}">{}</a>', url, urlencode(filters), text)

    def to_task(
        self, task_id: object, *, is_kept: bool, shown: Callable[[object], str] = str
    ) -> SafeString:
        """Link to a task; for a pruned task, show only the id."""
        return EMPTY if task_id is None else self._to_kept(Task, task_id, shown, is_kept=is_kept)

    def _to_kept(
        self, model: type[Model], key: object, shown: Callable[[object], str], *, is_kept: bool
    ) -> SafeString:
        if not is_kept:
            pruned = '{} <span class="taskqueue-quiet">({})</span>'
            return format_html(pruned, shown(key), _("pruned"))
        return self.to_row(model, key, shown(key))

    def to_run(
        self,
        task_id: UUID | None,
        workflow_id: UUID | None,
        kept: Collection[UUID],
        shown: Callable[[object], str] = str,
    ) -> SafeString:
        """Link to the task or the workflow of a run of a schedule."""
        if workflow_id is None:
            return self.to_task(task_id, is_kept=task_id in kept, shown=shown)
        return self._to_kept(Workflow, workflow_id, shown, is_kept=workflow_id in kept)

    def queue_url(self, name: str) -> str:
        """Return the address of a queue's page, by name as the queue may not have a row yet."""
        return f"{self.url('queue_named')}?{urlencode({'name': name})}"


def finished_within(links: Links, **words: str) -> Callable[[datetime, datetime], str]:
    """Return a function for the address of matching tasks that finished within a step."""

    def link(start: datetime, end: datetime) -> str:
        within = {"finished_after": start.isoformat(), "finished_before": end.isoformat()}
        query = urlencode({"q": search_text(**words, **within)})
        return f"{links.url('task_changelist')}?{query}"

    return link


def kept_tasks(ids: Iterable[UUID | None]) -> set[UUID]:
    """Return the ids of the tasks that are not pruned yet."""
    tasks = Task.objects.using(database_alias()).filter(id__in=list(filter(None, ids)))
    return set(tasks.values_list("id", flat=True))


class Ran(NamedTuple):
    """The task or the workflow of a schedule's run, if it has one."""

    task_id: UUID | None
    workflow_id: UUID | None


def kept_runs(runs: Iterable[Ran | Occurrence]) -> set[UUID]:
    """Return the ids of their tasks and workflows that are not pruned yet."""
    found = list(runs)
    kept = kept_tasks(run.task_id for run in found)
    ids = [run.workflow_id for run in found if run.workflow_id is not None]
    if ids:
        workflows = Workflow.objects.using(database_alias()).filter(id__in=ids)
        kept |= set(workflows.values_list("id", flat=True))
    return kept


class NameConverter:
    """A name in an address, quoted like the admin's keys.

    Dots are quoted too, because a browser would resolve a name such as `..` as a path.
    """

    regex = ".+"

    def to_url(self, name: str) -> str:
        return quote(name).replace(".", "_2E")

    def to_python(self, text: str) -> str:
        return re.sub(r"_([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)


register_converter(NameConverter, "taskqueue_name")


def back(request: HttpRequest, otherwise: str) -> HttpResponseRedirect:
    """Redirect to the page that the form names, but never to another site."""
    named = request.POST.get("next", "")
    is_ours = named.startswith("/") and url_has_allowed_host_and_scheme(named, allowed_hosts=None)
    return HttpResponseRedirect(named if is_ours else otherwise)
