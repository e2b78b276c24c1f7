"""The tasks of alerts: mail, and the call of a heartbeat.

`taskqueue.tasks` loads them, where workers find them like those of the project. Every worker does,
so what few of their bodies need is imported by these.
"""

from __future__ import annotations

from taskqueue.declarations.context import AttemptContext
from taskqueue.declarations.own_tasks import HEARTBEAT, MAIL
from taskqueue.definitions import task
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import Cancel
from taskqueue.models import AlertRule


@task(takes_context=True, **MAIL)
def mail(context: AttemptContext, rule: int, news: list[list[int | str]], more: int) -> str:
    """Send mail about the incidents of a rule, or a test message if there are none."""
    from taskqueue.alerts.mail import send

    row = _rule(rule)
    if row is None or not row.channels.get("mail"):
        raise Cancel("The rule is deleted, or tells nobody by mail any more.")
    number = send(row, news, more=more, message_id=context.task_id)
    return f"{number} recipients"


@task(**HEARTBEAT)
def heartbeat(rule: int) -> str:
    """Call the URL of a heartbeat."""
    from taskqueue.alerts.calling import Failed, call
    from taskqueue.engine.alerts.heartbeats import note_call, note_failed_call

    row = _rule(rule)
    if row is None or not row.url:
        raise Cancel("The rule is deleted.")
    try:
        said = call(row.url)
    except Failed as error:
        note_failed_call(row, str(error))
        raise
    note_call(row)
    return said


def _rule(rule_id: int) -> AlertRule | None:
    return AlertRule.objects.using(database_alias()).filter(id=rule_id).first()
