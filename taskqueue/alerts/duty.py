"""One check of the due alert rules: judge them, update their incidents, and report news."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.alerts import AlertKind, IncidentStatus
from taskqueue.core.log_text import one_line
from taskqueue.declarations.own_tasks import HEARTBEAT
from taskqueue.engine.alerts.incidents import lock_current, settle
from taskqueue.engine.alerts.messages import enqueue_message
from taskqueue.engine.alerts.serving import note_quiet, note_trouble, take_up, with_incidents
from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.models import AlertRule, Incident
from taskqueue.models.alert import LONGEST_TEXT
from taskqueue.monitoring.alerts.judging import is_well, judge
from taskqueue.monitoring.alerts.situation import AlertSituation

logger = logging.getLogger("taskqueue.worker")


def look(connection: BaseDatabaseWrapper) -> bool:
    """Check the due rules. Return whether a task was enqueued.

    Everything is read once for all of them, without locks. A rule that cannot be judged does not
    keep others from being judged.
    """
    rules, taken_at = take_up(connection)
    if not rules:
        return False
    is_busy = with_incidents(connection, [rule.id for rule in rules])
    has_enqueued = False
    situation, quiet = AlertSituation(), []
    for rule in rules:
        look = Look(connection, rule, taken_at, is_busy=rule.id in is_busy)
        try:
            with installed(connection):
                has_enqueued |= look.run(situation)
            note_trouble(connection, rule, "")
        except (OperationalError, InterfaceError):
            raise
        except IntegrityError:
            logger.warning("Alert rule left to another worker rule=%s", one_line(rule.name))
        except Exception as error:
            logger.exception("Alert rule not judged rule=%s", one_line(rule.name))
            note_trouble(connection, rule, f"{type(error).__name__}: {error}"[:LONGEST_TEXT])
        else:
            quiet += [rule.id] if look.is_quiet else []
    note_quiet(connection, quiet, taken_at)
    return has_enqueued


@dataclass
class Look:
    """One check of one rule."""

    connection: BaseDatabaseWrapper
    rule: AlertRule
    taken_at: datetime
    # Whether it has incidents that are open, or that people must still be told of.
    is_busy: bool
    # Whether there was nothing to write.
    is_quiet: bool = False

    def run(self, situation: AlertSituation) -> bool:
        """Check the rule. Return whether a task was enqueued."""
        if self.rule.kind == AlertKind.HEARTBEAT:
            return self._beat(situation)
        judged = judge(self.rule, situation)
        if not judged and not self.is_busy:
            self.is_quiet = True  # The usual case: the condition does not hold, and did not before.
            return False
        return settle(self.connection, self.rule, judged, taken_at=self.taken_at)

    def _beat(self, situation: AlertSituation) -> bool:
        """Have the URL of a heartbeat called, if all is well."""
        firing = Incident.objects.using(self.connection.alias).filter(
            status=IncidentStatus.FIRING, acknowledged_at=None, is_settled=False
        )
        rules = AlertRule.objects.using(self.connection.alias)
        silenced = rules.filter(silenced_until__gt=self.taken_at)
        if firing.exclude(rule_id__in=silenced.values("id")).exists() or not is_well(situation):
            self.is_quiet = True
            return False
        with orm_transaction(self.connection):
            # Another worker may have checked the rule since.
            if lock_current(self.connection, self.rule, taken_at=self.taken_at) is None:
                return False
            enqueue_message(HEARTBEAT, rule=self.rule.id)
        return True
