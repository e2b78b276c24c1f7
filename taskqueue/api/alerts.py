"""Alerts, acknowledging them, and the rules that raise them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_ALERT_RULES, VIEW_ALERTS
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Flag, Reasoned, Seconds, Text, When
from taskqueue.api.views import (
    LongPaged,
    OneView,
    Paged,
    act_view,
    page,
    page_of,
    rows_after,
)
from taskqueue.core.alerts import LARGEST, MOST_RECIPIENTS, AlertKind, AlertScope
from taskqueue.engine.alerts.acknowledging import id_of_alert, missing_alert
from taskqueue.engine.alerts.alert_verbs import ALERT_RULE_VERBS, ALERT_VERBS
from taskqueue.engine.alerts.editing import BOUNDS, MOST_ENDPOINTS
from taskqueue.exceptions import AlertRuleDoesNotExist
from taskqueue.models.alert import LONGEST_RULE_NAME, LONGEST_SUBJECT, LONGEST_URL
from taskqueue.monitoring.read_models.alert import (
    STATUSES,
    ShownAlert,
    ShownAlertRule,
    alert_rows,
    rule_named,
    rule_rows,
    shown_alerts,
    shown_rules,
)

Alerts = page_of(ShownAlert, "Alerts, the newest first.")
AlertRules = page_of(ShownAlertRule, "Alert rules by name.")


class AlertQuery(Paged):
    """The filter of alerts."""

    status = serializers.ChoiceField(required=False, choices=STATUSES)
    rule = Text(required=False, help_text="Only alerts of this rule.")


class AlertView(OneView):
    """One alert. If-Match compares its status, and whether it is acknowledged."""

    needs = {"GET": (VIEW_ALERTS,)}
    tag = "alerts"
    compared = ("pk", "status", "acknowledged_at")
    answers = {200: ShownAlert}

    def find(self, key: str) -> Any:
        row = alert_rows().filter(pk=id_of_alert(key)).first()
        if row is None:
            raise missing_alert(key)
        return row

    def details(self, found: Any) -> ShownAlert:
        (shown,) = shown_alerts([found])
        return shown


class AlertList(AlertView):
    """All alerts."""

    @endpoint("listAlerts", answers={200: Alerts}, query=AlertQuery)
    def get(self, request: Request) -> Response:
        """Alerts, the newest first."""
        rows = alert_rows()
        if "status" in self.parameters:
            rows = rows.filter(status=self.parameters["status"])
        if "rule" in self.parameters:
            rows = rows.filter(rule__name=self.parameters["rule"])
        return page(self, rows_after(rows, "-id", self.parameters, int), "id", shown_alerts)


class AlertDetail(AlertView):
    """Looking at an alert."""

    @endpoint("getAlert", answers={200: ShownAlert}, problems=(404,))
    def get(self, request: Request, alert_id: str) -> Response:
        """Return an alert."""
        return self.answer(alert_id)


ALERT_ACTS = {"acknowledge": act_view(AlertView, ALERT_VERBS["acknowledge"])}


def _duration(name: str, help_text: str) -> Seconds:
    least, most = BOUNDS[name]
    return Seconds(
        required=False, allow_null=True, min_value=least, max_value=most, help_text=help_text
    )


class RuleEdited(Reasoned):
    """The changes; fields that are left out keep their values, and null is the kind's own."""

    kind = serializers.ChoiceField(required=False, choices=[each.value for each in AlertKind])
    scope = serializers.ChoiceField(required=False, choices=[each.value for each in AlertScope])
    pattern = Text(
        required=False, allow_blank=True, max_length=LONGEST_SUBJECT,
        help_text="Compared with the scope's name; with `*` and `?`.",
    )  # fmt: skip
    threshold = serializers.FloatField(
        required=False, allow_null=True, min_value=0, max_value=LARGEST
    )
    window = _duration("window", "Seconds that are looked back.")
    wait = _duration("wait", "Seconds for which the condition has to hold.")
    repeat = _duration("repeat", "Seconds between two reminders.")
    mail = serializers.ListField(child=Text(), required=False, max_length=MOST_RECIPIENTS)
    endpoints = serializers.ListField(
        child=Text(), required=False, max_length=MOST_ENDPOINTS,
        help_text="Ids of webhook endpoints.",
    )  # fmt: skip
    url = Text(
        required=False, allow_blank=True, max_length=LONGEST_URL,
        help_text="That a heartbeat calls while all is well.",
    )  # fmt: skip
    enabled = Flag(required=False)


class Silence(Reasoned):
    """The end of a silence, and its reason."""

    until = When(
        required=False, allow_null=True, default=None,
        help_text="A moment, or seconds from now; null: for an hour.",
    )  # fmt: skip


class RuleCreated(RuleEdited):
    """A new rule."""

    name = Text(
        max_length=LONGEST_RULE_NAME, help_text="Unique, without `/`; it cannot be changed."
    )
    kind = serializers.ChoiceField(choices=[each.value for each in AlertKind])


class AlertRuleView(OneView):
    """One rule. If-Match compares what people edit, and its silence."""

    needs = {"GET": (VIEW_ALERT_RULES,)}
    tag = "alerts"
    compared = ("pk", "changed_at", "removed_at", "silenced_until")
    answers = {200: ShownAlertRule}

    def find(self, key: str) -> Any:
        row = rule_named(key)
        if row is None:
            raise AlertRuleDoesNotExist(f"There is no alert rule {key!r}.")
        return row

    def details(self, found: Any) -> ShownAlertRule:
        (shown,) = shown_rules([found], self.request.user)
        return shown


class AlertRuleList(AlertRuleView):
    """All rules."""

    needs = {
        "GET": (VIEW_ALERT_RULES,),
        "POST": (VIEW_ALERT_RULES, *ALERT_RULE_VERBS["create"].permissions),
    }
    is_conditional = False

    @endpoint("listAlertRules", answers={200: AlertRules}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Rules by name, with how many alerts of each are firing."""
        found = rows_after(rule_rows(), "name", self.parameters)
        return page(self, found, "name", lambda rows: shown_rules(rows, request.user))

    @endpoint("createAlertRule", answers={201: ShownAlertRule}, body=RuleCreated, problems=(409,))
    def post(self, request: Request) -> Response:
        """Create a rule, which is looked at from now on."""
        given = dict(self.parameters)
        name = given.pop("name")

        def act() -> Response:
            verb = ALERT_RULE_VERBS["create"].function
            assert verb is not None
            verb(name, by=request.user, **given)
            return self.answer(name, status=201, Location=self.address("alert-rule", name))

        return self.idempotent(act)


class AlertRuleDetail(AlertRuleView):
    """Looking at a rule, changing and deleting it."""

    needs = {
        "GET": (VIEW_ALERT_RULES,),
        "PATCH": (VIEW_ALERT_RULES, *ALERT_RULE_VERBS["edit"].permissions),
        "DELETE": (VIEW_ALERT_RULES, *ALERT_RULE_VERBS["delete"].permissions),
    }

    @endpoint("getAlertRule", answers={200: ShownAlertRule}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a rule, with the numbers that hold."""
        return self.answer(name)

    @endpoint(
        "editAlertRule", answers={200: ShownAlertRule}, body=RuleEdited, problems=(404, 409, 412)
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change a rule. One that code declares is changed there: 409."""
        return self.act(ALERT_RULE_VERBS["edit"], name, **self.parameters)

    @endpoint("deleteAlertRule", answers={204: None}, query=Reasoned, problems=(404, 409, 412))
    def delete(self, request: Request, name: str) -> Response:
        """Delete a rule with its alerts."""
        return self.act(ALERT_RULE_VERBS["delete"], name, **self.parameters)


RULE_ACTS = {
    "silence": act_view(AlertRuleView, ALERT_RULE_VERBS["silence"], body=Silence),
    "unsilence": act_view(AlertRuleView, ALERT_RULE_VERBS["unsilence"]),
    "test": act_view(AlertRuleView, ALERT_RULE_VERBS["test"], answers={202: ShownAlertRule}),
}
