"""The tables of verbs on alerts and on the rules that raise them."""

from __future__ import annotations

from functools import partial

from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import MANAGE_ALERTS, OPERATE
from taskqueue.engine.alerts.acknowledging import acknowledge
from taskqueue.engine.alerts.rule_verbs import (
    create_rule,
    delete_rule,
    edit_rule,
    send_test,
    silence_rule,
    unsilence_rule,
)
from taskqueue.engine.control.verb import Verb, verb_table

alert_rule_verb = partial(Verb, noun="alert_rule", permissions=(MANAGE_ALERTS,))


ALERT_VERBS = verb_table(
    Verb(
        noun="alert",
        name="acknowledge",
        function=acknowledge,
        permissions=(OPERATE,),
        label=_("Acknowledge"),
        entry=_("acknowledge alert"),
        effect=_("No reminders of it are sent; its end is still told."),
        done=_("Alert %(name)s acknowledged."),
        help="acknowledge a firing alert: no reminders follow, but its end is still reported",
        details="409 if it is over, or acknowledged already.",
    ),
)
ALERT_RULE_VERBS = verb_table(
    alert_rule_verb(
        name="create",
        function=create_rule,
        label=_("Create"),
        entry=_("create alert rule"),
        done=_("Alert rule %(name)s created."),
        help="create a rule",
    ),
    alert_rule_verb(
        name="edit",
        function=edit_rule,
        label=_("Edit"),
        entry=_("edit alert rule"),
        done=_("Alert rule %(name)s changed."),
        help="change a rule; fields that are not given are kept",
    ),
    alert_rule_verb(
        name="silence",
        function=silence_rule,
        label=_("Silence"),
        entry=_("silence alert rule"),
        effect=_("Alerts are still raised and shown, but nobody is notified until then."),
        done=_("Alert rule %(name)s silenced."),
        help="send nothing about the alerts of a rule for a while, by default an hour",
        details="When the silence ends, alerts that were raised meanwhile and are still firing are"
        " sent. A second silence replaces time and reason.",
    ),
    alert_rule_verb(
        name="unsilence",
        function=unsilence_rule,
        label=_("End silence"),
        entry=_("unsilence alert rule"),
        done=_("Silence of alert rule %(name)s ended."),
        help="end the silence of a rule",
        details="409 if it is not silenced.",
    ),
    alert_rule_verb(
        name="test",
        function=send_test,
        label=_("Test"),
        entry=_("test alert rule"),
        done=_("A test message of alert rule %(name)s is on its way to each channel."),
        help="send a test message to each channel of a rule",
        details="409 if the rule tells nobody.",
    ),
    alert_rule_verb(
        name="delete",
        function=delete_rule,
        label=_("Delete"),
        entry=_("delete alert rule"),
        done=_("Alert rule %(name)s deleted."),
        help="delete a rule with its alerts",
        is_grave=True,
    ),
    alert_rule_verb(name="remove", permissions=(), label=_("Remove"), entry=_("remove alert rule")),
)
