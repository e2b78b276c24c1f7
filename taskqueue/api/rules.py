"""Rules in time as JSON, as a schedule keeps them: read, shown, previewed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import rules, schedules
from taskqueue.access.permissions import VIEW_SCHEDULES
from taskqueue.api.base import ApiView
from taskqueue.api.describing import HAS_SCHEMA, describe
from taskqueue.api.fields import Moment, Strict, Whole
from taskqueue.exceptions import InvalidSchedule
from taskqueue.monitoring.reading import now
from taskqueue.rules import Rule
from taskqueue.rules.values import DAYS

MOST_TIMES = 20
"""A rule that is seldom due is looked for through many years, which takes a while for each time."""
LIMIT = {"oneOf": [{"type": "string", "format": "date-time"}, {"enum": [None]}]}
"""In words that OpenAPI 3.0 has too: a project may document all its addresses by that."""
LIMITS = {"start": LIMIT, "end": LIMIT}
SECONDS = {"type": "number", "minimum": 1, "maximum": 3162240000}
TEXT = {"type": "string"}
ZONE = {"type": "string", "description": "A name of the IANA database, such as Europe/Berlin."}
CLOCK = {"type": "string", "description": "A time of the day, such as 09:00."}


def _kind(kind: str, description: str, required: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": {"kind": {"type": "string", "enum": [kind]}, **required, **more},
        "required": ["kind", *required],
        "additionalProperties": False,
    }


WEEK_DAYS = {
    "description": 'On which the window begins: "mon-fri", or names such as ["mon", "wed"].',
    "oneOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    ],
}
SHOWN_DAYS = {"type": "array", "items": {"type": "string", "enum": list(DAYS)}}
KINDS = [
    _kind("cron", "When the wall clock fits.", {"expression": TEXT}, tz=ZONE, **LIMITS),
    _kind("every", "So often, in real time.", {"interval": SECONDS}, **LIMITS),
    _kind("after_end", "So long after the last end.", {"interval": SECONDS}, **LIMITS),
    _kind(
        "daily_window", "Again and again within a window of the day.",
        {"first": CLOCK, "last": CLOCK, "every": {**SECONDS, "maximum": 86400}},
        days=WEEK_DAYS, tz=ZONE, **LIMITS,
    ),
    _kind("once", "Once.", {"at": {"type": "string", "format": "date-time"}}),
]  # fmt: skip


class RuleField(serializers.Field[Any, Any, Any, Any]):
    """A rule, as JSON has it; durations are seconds."""

    def to_internal_value(self, data: Any) -> Rule:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("must be an object with a kind.", code="invalid")
        try:
            rule = rules.from_json(data)
            rule.check()
        except InvalidSchedule as error:
            raise serializers.ValidationError(str(error), code="invalid_rule") from None
        return rule

    def to_representation(self, value: Any) -> Any:
        return value


if HAS_SCHEMA:
    from drf_spectacular.utils import extend_schema_field

    extend_schema_field({"oneOf": KINDS})(RuleField)


class RulePreviewed(Strict):
    """A rule that no schedule needs to have."""

    rule = RuleField()
    count = Whole(required=False, default=5, min_value=1, max_value=MOST_TIMES)
    after = Moment(
        required=False, allow_null=True, default=None, help_text="From which moment on; null: now."
    )


class Times(serializers.Serializer[Any]):
    """A rule and its next times."""

    rule = RuleField(help_text="In its one canonical form.")
    rule_text = serializers.CharField(help_text="In words.")
    times = serializers.ListField(child=Moment(), help_text="The next nominal times, in UTC.")


class RulePreview(ApiView):
    """Looking at a rule before any schedule has it."""

    needs = {"POST": (VIEW_SCHEDULES,)}
    tag = "schedules"

    @describe("previewRule", answers={200: Times}, body=RulePreviewed)
    def post(self, request: Request) -> Response:
        """When a rule is due next. Nothing is written."""
        given = self.validated_body(request, RulePreviewed)
        after = given["after"] or now()
        times = schedules.preview_rule(given["rule"], count=given["count"], after=after)
        rule = given["rule"]
        shown = {"rule": rule.as_json(), "rule_text": rule.text, "times": times}
        return Response(Times(shown).data)
