"""Export schedules as one JSON document, and import it by name, all or none.

An entry describes a whole schedule: fields that it leaves out have their defaults. `args` and
`kwargs` may be null or contain redacted values, if the user who exported them may not see them.
Such values keep what is stored, so they are only possible for a schedule that already exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import fields as fields_of_class
from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic, set_rollback

from taskqueue import rules
from taskqueue.core.refusals import joined, why
from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.redaction import redacted_for
from taskqueue.declarations.scheduled import Scheduled, check_name
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.engine.connections import project_connection
from taskqueue.engine.schedules.checking import (
    checked_fields,
    refuse_declared,
    target_from,
)
from taskqueue.engine.schedules.editing import SILENT, differing, target_of
from taskqueue.engine.schedules.restoring import restored
from taskqueue.engine.schedules.verbs import create_schedule, edit_schedule
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import InvalidSchedule, TransitionRefused, UnknownTask
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.rules.values import seconds

VERSION = 1
MOST_SCHEDULES = 1_000
# The fields of an entry, by the columns that hold them.
FIELDS = {
    "name": "name", "task_name": "task", "rule": "rule", "args": "args", "kwargs": "kwargs",
    "options": "options", "missed": "missed", "missed_window": "missed_window",
    "overlap": "overlap", "pause_after_failures": "pause_after_failures", "jitter": "jitter",
    "max_runs": "max_runs", "is_enabled": "enabled",
}  # fmt: skip
REQUIRED = ("name", "task", "rule")
# The fields that are objects or lists; all others are checked with the schedule.
SHAPES: Mapping[str, type] = {"task": str, "rule": dict, "options": dict}

# The arguments of the verbs.
GIVEN = [each for each in fields_of_class(Scheduled) if each.name != "name"]

Entry = Mapping[str, Any]
# The arguments of a schedule that somebody may see; None if they are hidden.
ArgumentsOf = Callable[[Schedule], tuple[list[Any], dict[str, Any]] | None]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The effect of an import on one schedule, made or (in a dry run) expected."""

    name: str
    # `create`, `change` or `none`.
    action: str
    # The old and the new value of each field. Sensitive arguments are redacted; None stands for all
    # arguments of a task that is not known here.
    changes: dict[str, list[Any]]


def export_document(
    names: Collection[str] | None = None, *, arguments_of: ArgumentsOf | None = None
) -> dict[str, Any]:
    """Return the schedules that were created at run time, or those with these names.

    Schedules that are declared in code are left out: their code creates them. Arguments are
    complete unless `arguments_of` says otherwise. Raises `InvalidSchedule` for a name that is not
    among them.
    """
    rows = Schedule.objects.using(project_connection().alias).filter(source=ScheduleSource.ROW)
    found = list(rows.order_by("name").defer("request"))
    if names is not None:
        known = {row.name for row in found}
        for name in names:
            if name not in known:
                hint = did_you_mean(name, sorted(known))
                raise InvalidSchedule(_(
                    "No schedule {name!r} was created at run time.{hint}", name=name, hint=hint
                ))  # fmt: skip
        found = [row for row in found if row.name in names]
    return {"version": VERSION, "schedules": [_entry(row, arguments_of) for row in found]}


def _entry(row: Schedule, arguments_of: ArgumentsOf | None) -> dict[str, Any]:
    entry = {field: _plain(getattr(row, column)) for column, field in FIELDS.items()}
    if arguments_of is not None:
        entry["args"], entry["kwargs"] = arguments_of(row) or (None, None)
    return entry


def _plain(value: Any) -> Any:
    return seconds(value) if isinstance(value, timedelta) else value


def import_document(
    document: Any,
    *,
    dry_run: bool = False,
    by: object = "",
    reason: str = "",
    check: Callable[[Target, Entry], None] | None = None,
) -> list[Imported]:
    """Create and change schedules as a document says; return what was done to each.

    Schedules are matched by name, so importing twice changes nothing. Schedules that the document
    does not name are kept. With `dry_run` everything is applied and rolled back. `check` may raise
    to refuse what a user may not run. Raises `InvalidSchedule`, which lists all problems; nothing
    is written then.
    """
    entries = _entries(document)
    connection = project_connection()
    done: list[Imported] = []
    refused: list[str] = []
    with atomic(using=connection.alias):
        take_write_lock(connection)
        for name in sorted(entries):
            try:
                with atomic(using=connection.alias):
                    done.append(_import(connection, entries[name], by, reason, check))
            except (InvalidSchedule, UnknownTask, TransitionRefused) as error:
                refused.append(_("{name}: {error}", name=name, error=why(error)))
        if refused:
            raise InvalidSchedule(joined(refused))
        if dry_run:
            set_rollback(True, using=connection.alias)
    return done


def _entries(document: Any) -> dict[str, Entry]:
    """Return the entries by name. Raises `InvalidSchedule` if the document is not valid."""
    if not isinstance(document, Mapping):
        raise InvalidSchedule(_(
            "A document of schedules is a JSON object with version and schedules."
        ))  # fmt: skip
    _refuse_unknown(document, ("version", "schedules"), _("The document"))
    version = document.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        raise InvalidSchedule(_(
            "version must be {known}, not {version!r}.", known=VERSION, version=version
        ))  # fmt: skip
    found = document.get("schedules")
    if not isinstance(found, list) or len(found) > MOST_SCHEDULES:
        raise InvalidSchedule(_(
            "schedules must be a list of at most {most_schedules:,} objects.",
            most_schedules=MOST_SCHEDULES,
        ))  # fmt: skip
    entries: dict[str, Entry] = {}
    refused = []
    for place, entry in enumerate(found, start=1):
        try:
            name = _checked(entry, place)
            if name in entries:
                raise InvalidSchedule(_(
                    "{name}: The document has two schedules of this name.", name=name
                ))  # fmt: skip
            entries[name] = entry
        except InvalidSchedule as error:
            refused.append(why(error))
    if refused:
        raise InvalidSchedule(joined(refused))
    return entries


def _checked(entry: Any, place: int) -> str:
    """Return the name of an entry whose fields are known. Raises `InvalidSchedule`."""
    if not isinstance(entry, Mapping):
        raise InvalidSchedule(_("Schedule {place} is no JSON object.", place=place))
    name = entry.get("name")
    who = name if isinstance(name, str) and name else _("Schedule {place}", place=place)
    try:
        _refuse_unknown(entry, FIELDS.values(), _("A schedule"))
        for field in REQUIRED:
            if field not in entry:
                raise InvalidSchedule(_("{field} is missing.", field=field))
        for field, kind in SHAPES.items():
            if field in entry and not isinstance(entry[field], kind):
                what = _("text") if kind is str else _("an object")
                raise InvalidSchedule(_("{field} must be {what}.", field=field, what=what))
        return check_name(name)
    except InvalidSchedule as error:
        raise InvalidSchedule(_("{who}: {error}", who=who, error=why(error))) from None


def _refuse_unknown(found: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    for field in found:
        if field not in known:
            hint = did_you_mean(str(field), list(known))
            raise InvalidSchedule(_(
                "{what} has no field {field!r}.{hint}", what=what, field=str(field)[:100], hint=hint
            ))  # fmt: skip


def _import(
    connection: BaseDatabaseWrapper,
    entry: Entry,
    by: object,
    reason: str,
    check: Callable[[Target, Entry], None] | None,
) -> Imported:
    name = entry["name"]
    rows = Schedule.objects.using(connection.alias)
    row = rows.select_for_update().filter(name=name).first()
    if row is not None:
        refuse_declared(row, _("changed"))
    kept = target_of(row) if row is not None and row.task_name == entry["task"] else None
    target = kept or target_from(entry["task"])
    if check is not None:
        check(target, entry)
    declared = _declared(row, target, entry)
    scheduled = Scheduled(declared.pop("rule"), name=name, **declared)
    fields = checked_fields(scheduled, target)
    given: dict[str, Any] = {each.name: getattr(scheduled, each.name) for each in GIVEN}
    given |= {"by": by, "reason": reason}
    if row is None:
        create_schedule(name, target, **given)
        return Imported(name=name, action="create", changes={})
    changed = [column for column in differing(row, fields) if column not in SILENT]
    if not changed:
        return Imported(name=name, action="none", changes={})
    changes = {
        FIELDS[column]: _difference(row, target, column, fields)
        for column in changed
        if column in FIELDS
    }
    edit_schedule(name, task=target, **given)
    return Imported(name=name, action="change", changes=changes)


def _declared(row: Schedule | None, target: Target, entry: Entry) -> dict[str, Any]:
    """Return the arguments of a declaration, with the stored values for hidden or redacted ones."""
    args, kwargs = entry.get("args", []), entry.get("kwargs", {})
    if args is None and kwargs is None:
        if row is None or target_of(row) is not target:
            raise InvalidSchedule(_(
                "args and kwargs are null: they were hidden from whoever exported them. Enter them."
            ))  # fmt: skip
        args, kwargs = row.args, row.kwargs
    if not isinstance(args, list) or not isinstance(kwargs, Mapping):
        raise InvalidSchedule(_("args must be a list, and kwargs an object."))
    args, kwargs = restored(row, target, args, dict(kwargs))
    rule = rules.from_json(entry["rule"])
    rule.check()
    columns = ("name", "task", "args", "kwargs", "rule")
    rest = {field: value for field, value in entry.items() if field not in columns}
    return {**rest, "rule": rule, "args": args, "kwargs": kwargs}


def _difference(row: Schedule, target: Target, column: str, fields: Mapping[str, Any]) -> list[Any]:
    if column not in ("args", "kwargs"):
        return [_plain(getattr(row, column)), _plain(fields[column])]
    former = target_of(row)
    before = None if former is None else redacted_for(former, row.args, row.kwargs)
    after = redacted_for(target, fields["args"], fields["kwargs"])
    return [None if before is None else getattr(before, column), getattr(after, column)]
