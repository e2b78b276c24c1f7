"""The options of a task in the body of a request: a field for each, within the bounds of REST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework import serializers

from taskqueue.api.fields import Flag, Moment, Strict, Text
from taskqueue.api.fields import Seconds as SecondsField
from taskqueue.api.fields import When as WhenField
from taskqueue.api.fields import Whole as WholeField
from taskqueue.core.retries import LONGEST, POLICIES, Backoff
from taskqueue.declarations.arguments import LONGEST_UNIQUE_KEY
from taskqueue.declarations.option import Option, Use
from taskqueue.declarations.option_forms import backoff_from_json, exception_class
from taskqueue.declarations.option_kinds import (
    LONGEST_WORKER_NAME,
    MOST_WORKERS,
    Choice,
    ExceptionClasses,
    HoldTime,
    JsonObject,
    Kind,
    Name,
    Policy,
    Seconds,
    Switch,
    UniqueKeyKind,
    When,
    Whole,
    WorkerNames,
)
from taskqueue.declarations.options import DAY, YEAR, options_for
from taskqueue.exceptions import InvalidTask

SHORTEST_BACKOFF = 1
"""Seconds between two attempts, before jitter."""
LONGEST_DELAY = YEAR
"""Seconds from now until a moment of a request, and the longest `unique_for`."""
MOST_CLASSES, LONGEST_CLASS_PATH = 50, 500


class BackoffField(serializers.Field[Any, Any, Any, Any]):
    """A policy by its name, and its numbers: `{"policy": "fixed", "seconds": 5}`."""

    def to_internal_value(self, data: Any) -> Backoff:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError(
                'must be a policy, such as {"policy": "exponential", "base": 2, "cap": 600}.'
            )
        try:
            policy = backoff_from_json(data)
        except InvalidTask as error:
            raise serializers.ValidationError(str(error).removeprefix("backoff: ")) from None
        for number in fields(policy):
            if number.name != "jitter" and getattr(policy, number.name) < SHORTEST_BACKOFF:
                raise serializers.ValidationError(
                    f"{number.name} must be at least {SHORTEST_BACKOFF} second over REST."
                )
        return policy

    def to_representation(self, value: Any) -> Any:
        return value


class NearMoment(WhenField):
    """A moment with its offset, or seconds from now: at most a year ahead."""

    def to_internal_value(self, data: Any) -> datetime | float:
        if not isinstance(data, str):
            seconds: float = SecondsField(max_value=LONGEST_DELAY).run_validation(data)
            return seconds
        moment: datetime = Moment().run_validation(data)
        if moment > timezone.now() + timedelta(seconds=LONGEST_DELAY):
            days = LONGEST_DELAY // DAY
            raise serializers.ValidationError(f"must be at most {days} days ahead over REST.")
        return moment


class RetryForField(serializers.ListField):
    """Exception classes by their paths; nothing is imported for them."""

    def __init__(self, **options: Any) -> None:
        child = Text(max_length=LONGEST_CLASS_PATH)
        super().__init__(child=child, max_length=MOST_CLASSES, **options)

    def to_internal_value(self, data: Any) -> list[type[BaseException]]:
        try:
            return [exception_class(path) for path in super().to_internal_value(data)]
        except InvalidTask as error:
            raise serializers.ValidationError(str(error).removeprefix("retry_for: ")) from None

    def to_representation(self, data: Any) -> Any:
        return data


class UniqueForField(serializers.Field[Any, Any, Any, Any]):
    """`finished`, `started` or `kept`, or seconds."""

    def to_internal_value(self, data: Any) -> str | float:
        if isinstance(data, str):
            if data not in ("finished", "started", "kept"):
                raise serializers.ValidationError(
                    "must be 'finished', 'started', 'kept' or a number of seconds."
                )
            return data
        seconds: float = SecondsField(min_value=0.001, max_value=LONGEST_DELAY).run_validation(data)
        return seconds

    def to_representation(self, value: Any) -> Any:
        return value


class UniqueKeyField(serializers.Field[Any, Any, Any, Any]):
    """The key, names of arguments that make it, or true for all of them."""

    def to_internal_value(self, data: Any) -> str | list[str] | bool:
        if data is True:
            return data
        if isinstance(data, list):
            names = serializers.ListField(child=Text(), min_length=1)
            return list(names.run_validation(data))
        key: str = Text(max_length=LONGEST_UNIQUE_KEY).run_validation(data)
        return key

    def to_representation(self, value: Any) -> Any:
        return value


class ObjectField(serializers.DictField):
    """An object of JSON, with anything in it."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_a_dict", input_type=type(data).__name__)
        return data


class ListOfAnything(serializers.ListField):
    """A list of JSON, with anything in it."""

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        return data


class OptionsOf(Strict):
    """The options that a request may give, each with the field of its kind."""

    use: ClassVar[Use]
    left_out: ClassVar[frozenset[str]] = frozenset()

    def get_fields(self) -> dict[str, Any]:
        allowed = options_for(self.use | Use.REST).values()
        fields = {each.name: field_of(each) for each in allowed if each.name not in self.left_out}
        return fields | super().get_fields()


class ChangeableOptions(OptionsOf):
    """Options that may also be changed after the enqueue; null stands for the setting."""

    use = Use.CHANGE


class ScheduleOptions(OptionsOf):
    """The options of `.using()`, except those that the rule of a schedule decides.

    A request chooses no `unique_scope`: it would take the unique keys of any definition, also of
    one that is not marked `api=True`.
    """

    use = Use.SCHEDULE
    set_elsewhere: ClassVar[Mapping[str, str]] = {
        "unique_scope": "A request cannot set the scope of unique keys: the definition declares it "
        "in @task(unique_scope=...).",
    }


class EnqueueOptions(ScheduleOptions):
    """The options of `.using()`."""

    use = Use.USING


class StoredOptions(ScheduleOptions):
    """The options of a schedule: checked, and kept as they were sent."""

    def to_internal_value(self, data: Any) -> Any:
        super().to_internal_value(data)
        return dict(data)


def field_of(option: Option) -> serializers.Field[Any, Any, Any, Any]:
    """Return the field of a request that takes the option, within the bounds of REST."""
    kind = option.kind
    given: dict[str, Any] = {
        "required": False,
        "allow_null": option.default is None,
        "help_text": option.help,
    }
    if isinstance(kind, Name):
        return Text(max_length=kind.longest, **given)
    if isinstance(kind, Whole):
        highest = int(option.rest_highest or kind.highest)
        return WholeField(min_value=kind.lowest, max_value=highest, **given)
    if isinstance(kind, Seconds):
        return SecondsField(min_value=kind.lowest, max_value=option.rest_highest, **given)
    if isinstance(kind, Choice):
        return serializers.ChoiceField(choices=list(filter(None, kind.words)), **given)
    if isinstance(kind, WorkerNames):
        names = Text(max_length=LONGEST_WORKER_NAME)
        return serializers.ListField(child=names, min_length=1, max_length=MOST_WORKERS, **given)
    field: serializers.Field[Any, Any, Any, Any] = _FIELDS[type(kind)](**given)
    return field


_FIELDS: dict[type[Kind], Any] = {
    Switch: Flag,
    When: NearMoment,
    Policy: BackoffField,
    ExceptionClasses: RetryForField,
    UniqueKeyKind: UniqueKeyField,
    HoldTime: UniqueForField,
    JsonObject: ObjectField,
}
CHANGEABLE = frozenset(ChangeableOptions().fields)
OPTIONS = frozenset(EnqueueOptions().fields)


def _describe_fields() -> None:
    """Describe to drf-spectacular the fields that are not of a kind of its own."""
    from drf_spectacular.utils import extend_schema_field

    number = {"type": "number", "minimum": SHORTEST_BACKOFF, "maximum": LONGEST}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    policies = [
        {
            "type": "object",
            "properties": {"policy": {"type": "string", "enum": [name]}}
            | {field.name: number for field in fields(policy)}
            | {"jitter": share},
            "required": ["policy"],
            "additionalProperties": False,
        }
        for name, policy in POLICIES.items()
    ]
    extend_schema_field({"oneOf": policies})(BackoffField)
    moment = {"type": "string", "format": "date-time"}
    delay = {"type": "number", "minimum": 0, "maximum": LONGEST_DELAY}
    extend_schema_field({"oneOf": [moment, delay]})(NearMoment)
    words = {"type": "string", "enum": ["finished", "started", "kept"]}
    seconds = {"type": "number", "minimum": 0.001, "maximum": LONGEST_DELAY}
    extend_schema_field({"oneOf": [words, seconds]})(UniqueForField)
    key = {"type": "string", "minLength": 1, "maxLength": LONGEST_UNIQUE_KEY}
    names = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    all_arguments = {"type": "boolean", "enum": [True]}
    extend_schema_field({"oneOf": [key, names, all_arguments]})(UniqueKeyField)


try:
    _describe_fields()
except ImportError:  # pragma: no cover  (without the extra `api` there is no schema)
    pass
