"""Pause and resume definitions, or everything. Running tasks continue."""

from __future__ import annotations

from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.names import DEFINITION_NAME
from taskqueue.declarations.time_kinds import Moment
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.changes import moment_of
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.control.unknown_names import unknown_definitions, warn_of_unknown
from taskqueue.engine.dialect import dialect_for, execute
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.statement import Fact, Statement
from taskqueue.exceptions import InvalidTask, TransitionRefused
from taskqueue.models import Pause
from taskqueue.models.pause import EVERYTHING

ALL_QUEUES = "all queues"
# Claims have ignored such a pause since its end.
HAS_ENDED_PAUSES = Fact.of("EXISTS (SELECT 1 FROM taskqueue_pause WHERE paused_until <= {now})")
LIFT = Statement.of("DELETE FROM taskqueue_pause WHERE paused_until <= {now}")


def pause_definition(
    name: str,
    *,
    until: Moment | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Pause a definition: later claims take none of its tasks, running ones continue.

    Enqueues and schedules still create tasks. `until`, a datetime or a duration from now, ends the
    pause automatically. Pausing again replaces time and reason. The definition need not be known
    here: a warning is logged for an unknown name. Raises `InvalidTask` for an impossible name, or a
    time in the past.
    """
    if not (isinstance(name, str) and DEFINITION_NAME.fullmatch(name)):
        raise InvalidTask(_("{name!r} is not the name of a definition.", name=name))
    _pause("definition", name, until=until, by=by, reason=reason, seen=seen)
    if hint := unknown_definitions(project_connection(), [name]).get(name):
        warn_of_unknown("Definition paused that is unknown name=%s hint=%s", name, hint)


def resume_definition(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """End the pause of a definition, and wake the workers.

    Raises `TransitionRefused` if it is not paused.
    """
    _resume("definition", name, by=by, reason=reason, seen=seen)


def pause_all(
    *, until: Moment | None = None, by: object = "", reason: str = "", seen: Seen = None
) -> None:
    """Pause everything: no worker claims anything, running tasks continue.

    Raises `InvalidTask` for a time in the past.
    """
    _pause("queue", EVERYTHING, until=until, by=by, reason=reason, seen=seen)


def resume_all(*, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """End the pause of everything; pauses of single queues and definitions are kept.

    Raises `TransitionRefused` if not everything is paused.
    """
    _resume("queue", EVERYTHING, by=by, reason=reason, seen=seen)


def lift_pauses(connection: BaseDatabaseWrapper) -> int:
    """Delete the pauses that are over. Return how many there were."""
    return execute(connection, LIFT)


def _pause(
    noun: str, name: str, *, until: Moment | None, by: object, reason: str, seen: Seen
) -> None:
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        pause, now = _locked(connection, name, seen)
        ends = None if until is None else moment_of(until, now, what="until")
        if ends is not None and ends <= now:
            raise InvalidTask(_(
                "until must be in the future, not at {ends}.", ends=ends.isoformat()
            ))  # fmt: skip
        values = {
            "paused_at": now, "paused_until": ends,
            "paused_by": who.by, "pause_reason": who.reason,
        }  # fmt: skip
        Pause.objects.using(connection.alias).update_or_create(name=name, defaults=values)
        before = "paused" if pause is not None and pause.is_paused_at(now) else ""
        act = Act(name or ALL_QUEUES, before, "" if ends is None else f"until {ends.isoformat()}")
        audit(connection, noun, _verb(name, "pause"), [act], person=who)


def _resume(noun: str, name: str, *, by: object, reason: str, seen: Seen) -> None:
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        pause, now = _locked(connection, name, seen)
        if pause is None or not pause.is_paused_at(now):
            rows = Pause.objects.using(connection.alias).exclude(name=EVERYTHING)
            hint = did_you_mean(name, [row.name for row in rows if row.is_paused_at(now)])
            if not name:
                raise TransitionRefused(_("Not everything is paused."))
            raise TransitionRefused(_(
                "Definition {name!r} is not paused.{hint}", name=name, hint=hint
            ))  # fmt: skip
        pause.delete()
        act = Act(name or ALL_QUEUES, "paused")
        audit(connection, noun, _verb(name, "resume"), [act], person=who)
        wake(connection, ANYWHERE)


def _verb(name: str, verb: str) -> str:
    return verb if name else f"{verb}_all"


def _locked(
    connection: BaseDatabaseWrapper, name: str, seen: Seen
) -> tuple[Pause | None, datetime]:
    """Lock the pause, if there is one, as the caller saw it. Return it with the time."""
    take_write_lock(connection)
    rows = Pause.objects.using(connection.alias).filter(name=name)
    pause = rows.select_for_update().first() if is_storable(name) else None
    # If there is none, the caller must have seen that.
    seen_row = pause or Pause(name=name)
    require_seen(seen_row, seen, _("The pause of {name}", name=seen_row))
    return pause, dialect_for(connection).now(connection)
