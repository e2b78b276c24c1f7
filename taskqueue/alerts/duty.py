"""One look at the alert rules that are due: judge them, move their incidents, tell what is new."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import IntegrityError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.alerts import EXAMINED, EXAMINED_AGAIN, AlertKind, IncidentStatus
from taskqueue.core.log_text import one_line
from taskqueue.engine.alerts.incidents import lock_unchanged, settle
from taskqueue.engine.alerts.messages import EXAMINATION, HEARTBEAT, enqueue_message
from taskqueue.engine.alerts.serving import note_trouble, take_up, with_incidents
from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.models import AlertRule, Incident
from taskqueue.models.alert import LONGEST_TEXT
from taskqueue.monitoring.alerts.judging import is_well, judge
from taskqueue.monitoring.alerts.situation import Situation

logger = logging.getLogger("taskqueue.worker")


def look(connection: BaseDatabaseWrapper) -> bool:
    """Look at the rules that are due; whether a task was enqueued.

    What is read is read once for all of them, without a lock. One rule that cannot be judged keeps
    nobody from the others.
    """
    rules = take_up(connection)
    if not rules:
        return False
    is_busy = with_incidents(connection, [rule.id for rule in rules])
    has_enqueued = False
    situation = Situation()
    for rule in rules:
        try:
            with installed(connection):
                has_enqueued |= _look_at(connection, rule, situation, is_busy=rule.id in is_busy)
            note_trouble(connection, rule, "")
        except (OperationalError, InterfaceError):
            raise
        except IntegrityError:
            logger.warning("Alert rule left to another worker rule=%s", one_line(rule.name))
        except Exception as error:
            logger.exception("Alert rule not judged rule=%s", one_line(rule.name))
            note_trouble(connection, rule, f"{type(error).__name__}: {error}"[:LONGEST_TEXT])
    return has_enqueued


def _look_at(
    connection: BaseDatabaseWrapper, rule: AlertRule, situation: Situation, *, is_busy: bool
) -> bool:
    if rule.kind == AlertKind.HEARTBEAT:
        return _beat(connection, rule)
    if rule.kind == AlertKind.DOCTOR and rule.found is None:
        return _ask(connection, rule, is_busy=is_busy)
    judged = judge(rule, situation)
    # Nothing holds, and nothing did: as ever.
    return (
        settle(connection, rule, judged) if judged or is_busy or rule.found is not None else False
    )


def _beat(connection: BaseDatabaseWrapper, rule: AlertRule) -> bool:
    """Have the URL of a heartbeat called, if all is well."""
    firing = Incident.objects.using(connection.alias).filter(
        status=IncidentStatus.FIRING, acknowledged_at=None, ended_at=None, is_settled=False
    )
    silenced = AlertRule.objects.using(connection.alias).filter(
        silenced_until__gt=rule.evaluated_at
    )
    if firing.exclude(rule_id__in=silenced.values("id")).exists() or not is_well():
        return False
    with orm_transaction(connection):
        if lock_unchanged(connection, rule) is None:
            return False
        enqueue_message(HEARTBEAT, rule=rule.id)
    return True


def _ask(connection: BaseDatabaseWrapper, rule: AlertRule, *, is_busy: bool) -> bool:
    """Have the doctor asked, if it is time; more often while it has found something.

    In a task: an examination may take many seconds, in which a worker could not claim. What it
    has found is settled at the next look.
    """
    assert rule.evaluated_at is not None
    every = timedelta(seconds=EXAMINED_AGAIN if is_busy else EXAMINED)
    if rule.asked_at is not None and rule.evaluated_at < rule.asked_at + every:
        # Nothing new is known of its incidents; what is still to be told of them is told.
        return settle(connection, rule, None) if is_busy else False
    with orm_transaction(connection):
        if lock_unchanged(connection, rule) is None:
            return False
        AlertRule.objects.using(connection.alias).filter(id=rule.id).update(
            asked_at=rule.evaluated_at
        )
        enqueue_message(EXAMINATION, rule=rule.id)
    return True
