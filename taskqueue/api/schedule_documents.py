"""Schedules as one document: exported, and imported by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import schedules
from taskqueue.access.permissions import VIEW_SCHEDULES
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Anything, Flag, Reasoned, Whole
from taskqueue.api.tasks.bodies import check_kept, exposed_target
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.engine.schedules.documents import MOST_SCHEDULES, VERSION
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.monitoring.read_models.base import about, json_form
from taskqueue.monitoring.read_models.schedule import visible_arguments_of


@dataclass(frozen=True, kw_only=True)
class ScheduleDocument:
    """The schedules that were created at run time, for an import."""

    version: int
    schedules: list[dict[str, Any]] = about(
        "As `createSchedule` takes them. `args` and `kwargs` are null where you lack the permission"
        " to see arguments; sensitive ones are redacted."
    )


class DocumentGiven(Reasoned):
    """A document as it was exported, perhaps edited."""

    version = Whole(required=False, default=VERSION, min_value=VERSION, max_value=VERSION)
    schedules = serializers.ListField(
        child=serializers.DictField(child=Anything(allow_null=True)), max_length=MOST_SCHEDULES,
        help_text="As `createSchedule` takes them. A field that is left out has its default; args "
        "and kwargs that are null, or redacted, stay as they are.",
    )  # fmt: skip
    dry_run = Flag(required=False, default=False, help_text="Only report what would change.")


@dataclass(frozen=True, kw_only=True)
class ImportedSchedule:
    """The effect of an import on one schedule, made or (in a dry run) expected."""

    name: str
    action: str = about(choices=["create", "change", "none"])
    changes: dict[str, Any] = about(
        "What was there and what came in its place, by field; null stands for arguments of a task"
        " that is not known here."
    )


@dataclass(frozen=True, kw_only=True)
class ImportedDocument:
    """The effect of an import, done or foreseen."""

    dry_run: bool
    schedules: list[ImportedSchedule]


class SchedulesDocument(ApiView):
    """Export and import of schedules."""

    needs = {
        "GET": (VIEW_SCHEDULES,),
        "POST": (VIEW_SCHEDULES, *SCHEDULE_VERBS["create"].permissions),
    }
    tag = "schedules"

    @endpoint("exportSchedules", answers={200: ScheduleDocument})
    def get(self, request: Request) -> Response:
        """Return the schedules that were created at run time as a document."""
        found = schedules.export_document(
            arguments_of=lambda row: visible_arguments_of(row, request.user)
        )
        return Response(json_form(ScheduleDocument(**found)))

    @endpoint(
        "importSchedules", answers={200: ImportedDocument}, body=DocumentGiven, problems=(422,)
    )
    def post(self, request: Request) -> Response:
        """Create and change schedules so that they are as the document has them: all or none.
        Schedules that it does not name stay as they are.
        """
        asked = dict(self.parameters)
        dry_run, reason = asked.pop("dry_run"), asked.pop("reason")

        def act() -> Response:
            done = schedules.import_document(
                asked, dry_run=dry_run, by=request.user, reason=reason, check=_check_exposed
            )
            shown = [ImportedSchedule(**vars(each)) for each in done]
            return Response(json_form(ImportedDocument(dry_run=dry_run, schedules=shown)))

        return self.idempotent(act)


def _check_exposed(target: Target, entry: Mapping[str, Any]) -> None:
    """Raise unless the API may enqueue the task or workflow with these options."""
    exposed_target(target.name, target)
    if isinstance(target, BaseDefinition):
        check_kept(target, entry.get("options", {}), at=("schedules",))
