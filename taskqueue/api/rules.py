"""Schedule rules as JSON: read, shown and previewed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import rules, schedules
from taskqueue.access.permissions import VIEW_SCHEDULES
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.describing import serializer_for
from taskqueue.api.fields import MOMENT, DescribedField, Moment, Strict, Whole
from taskqueue.exceptions import InvalidSchedule
from taskqueue.monitoring.read_models.base import about, json_form
from taskqueue.monitoring.reading import now
from taskqueue.rules import Rule

# A rule that is seldom due is looked for through many years, which takes a while for each time.
MOST_TIMES = 20
LIMIT = {"oneOf": [MOMENT, {"enum": [None]}]}
LIMITS = {"start": LIMIT, "end": LIMIT}
SECONDS = {"type": "number", "minimum": 1, "maximum": 3162240000}
TEXT = {"type": "string"}
ZONE = {"type": "string", "description": "A name of the IANA database, such as Europe/Berlin."}
CLOCK = {"type": "string", "description": "A time of the day, such as 09:00."}
WEEK_DAYS = {
    "description": 'On which the window begins: "mon-fri", or names such as ["mon", "wed"].',
    "oneOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}],
}


def _kind(kind: str, description: str, required: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": {"kind": {"type": "string", "enum": [kind]}, **required, **more},
        "required": ["kind", *required],
        "additionalProperties": False,
    }


class RuleField(DescribedField):
    """A rule, as JSON has it; durations are seconds."""

    json_schema = {
        "oneOf": [
            _kind("cron", "When the wall clock fits.", {"expression": TEXT}, tz=ZONE, **LIMITS),
            _kind("every", "So often, in real time.", {"interval": SECONDS}, **LIMITS),
            _kind("after_end", "So long after the last end.", {"interval": SECONDS}, **LIMITS),
            _kind(
                "daily_window", "Again and again within a window of the day.",
                {"first": CLOCK, "last": CLOCK, "every": {**SECONDS, "maximum": 86400}},
                days=WEEK_DAYS, tz=ZONE, **LIMITS,
            ),
            _kind("once", "Once.", {"at": MOMENT}),
        ]
    }  # fmt: skip

    def to_internal_value(self, data: Any) -> Rule:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("must be an object with a kind.", code="invalid")
        try:
            rule = rules.from_json(data)
            rule.check()
        except InvalidSchedule as error:
            raise serializers.ValidationError(str(error), code="invalid_rule") from None
        return rule


class RulePreviewed(Strict):
    """A rule that no schedule needs to have."""

    rule = RuleField()
    count = Whole(required=False, default=5, min_value=1, max_value=MOST_TIMES)
    after = Moment(
        required=False, allow_null=True, default=None, help_text="From which moment on; null: now."
    )


@dataclass(frozen=True, kw_only=True)
class Times:
    """A rule and its next times."""

    rule: Any = about("In its one canonical form.")
    rule_text: str = about("In words.")
    times: list[datetime] = about("The next nominal times, in UTC.")


class RulePreview(ApiView):
    """Looking at a rule before any schedule has it."""

    needs = {"POST": (VIEW_SCHEDULES,)}
    tag = "schedules"

    @endpoint(
        "previewRule",
        answers={200: serializer_for(Times, described={"rule": RuleField})},
        body=RulePreviewed,
    )
    def post(self, request: Request) -> Response:
        """When a rule is due next. Nothing is written."""
        rule, count = self.parameters["rule"], self.parameters["count"]
        times = schedules.preview_rule(rule, count=count, after=self.parameters["after"] or now())
        return Response(json_form(Times(rule=rule.as_json(), rule_text=rule.text, times=times)))
