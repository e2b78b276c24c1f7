"""The options of a task in the body of a request, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework import serializers

from taskqueue.api.fields import Flag, Moment, Seconds, Strict, Text, When, Whole
from taskqueue.api.tasks.bounds import (
    DAY,
    LONGEST_CLASS_PATH,
    LONGEST_CRASH_DELAY,
    LONGEST_DELAY,
    LONGEST_LEASE,
    LONGEST_PING,
    LONGEST_RETENTION,
    LONGEST_TIMEOUT,
    LONGEST_UNIQUE_FOR,
    MOST_ATTEMPTS,
    MOST_CLASSES,
    MOST_CRASHES,
    MOST_DISTINCT_WORKERS,
    SHORTEST_BACKOFF,
)
from taskqueue.core.retries import LONGEST, POLICIES, Backoff
from taskqueue.declarations.option_forms import backoff_from_json, exception_class
from taskqueue.declarations.option_values import (
    HIGHEST_PRIORITY,
    LONGEST_WORKER_NAME,
    LOWEST_PRIORITY,
    MOST_WORKERS,
)
from taskqueue.declarations.unique_keys import LONGEST_UNIQUE_KEY
from taskqueue.exceptions import InvalidTask


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
        for each in fields(policy):
            if each.name != "jitter" and getattr(policy, each.name) < SHORTEST_BACKOFF:
                told = f"{each.name} must be at least {SHORTEST_BACKOFF} second over REST."
                raise serializers.ValidationError(told)
        return policy

    def to_representation(self, value: Any) -> Any:
        return value


class NearMoment(When):
    """A moment with its offset, or seconds from now: at most a year ahead."""

    def to_internal_value(self, data: Any) -> datetime | float:
        if not isinstance(data, str):
            seconds: float = Seconds(max_value=LONGEST_DELAY).run_validation(data)
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
        seconds: float = Seconds(min_value=0.001, max_value=LONGEST_UNIQUE_FOR).run_validation(data)
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


class ChangeableOptions(Strict):
    """What may also be changed after the enqueue; null stands for the project's setting."""

    queue_name = Text(required=False, max_length=100)
    priority = Whole(
        required=False, min_value=LOWEST_PRIORITY, max_value=HIGHEST_PRIORITY,
        help_text="Higher ones first.",
    )  # fmt: skip
    max_attempts = Whole(
        required=False, allow_null=True, min_value=1, max_value=MOST_ATTEMPTS,
        help_text="Failures after which it fails for good.",
    )  # fmt: skip
    max_crashes = Whole(required=False, allow_null=True, min_value=1, max_value=MOST_CRASHES)
    crash_delay = Seconds(required=False, allow_null=True, max_value=LONGEST_CRASH_DELAY)
    backoff = BackoffField(required=False, allow_null=True)
    timeout = Seconds(
        required=False, allow_null=True, min_value=0.001, max_value=LONGEST_TIMEOUT,
        help_text="Of each attempt.",
    )  # fmt: skip
    lease_duration = Seconds(required=False, allow_null=True, min_value=1, max_value=LONGEST_LEASE)
    ping_interval = Seconds(required=False, allow_null=True, min_value=0.05, max_value=LONGEST_PING)
    retention = Seconds(
        required=False, allow_null=True, max_value=LONGEST_RETENTION,
        help_text="How long it is kept after its end.",
    )  # fmt: skip
    worker_names = serializers.ListField(
        child=Text(max_length=LONGEST_WORKER_NAME), required=False, allow_null=True,
        min_length=1, max_length=MOST_WORKERS, help_text="The only workers that may run it.",
    )  # fmt: skip


class ScheduleOptions(ChangeableOptions):
    """The options of `.using()`, but for those that the rule of a schedule decides.

    A request chooses no `unique_scope`: it would take the unique keys of any definition, also of
    one that is not marked `api=True`.
    """

    set_elsewhere: ClassVar[Mapping[str, str]] = {
        "unique_scope": "A request cannot set the scope of unique keys: the definition declares it "
        "in @task(unique_scope=...).",
    }
    retry_for = RetryForField(
        required=False, allow_null=True,
        help_text="Exception classes that are retried, such as ConnectionError or "
        "shop.errors.Busy; of those that the project's tasks import. Null: all.",
    )  # fmt: skip
    deadline = NearMoment(
        required=False, allow_null=True, help_text="It fails then, whatever it does."
    )
    expires_after = Seconds(
        required=False, allow_null=True, max_value=LONGEST_DELAY,
        help_text="It is cancelled if not started by then.",
    )  # fmt: skip
    unique_key = UniqueKeyField(
        required=False, allow_null=True,
        help_text="The key, or the arguments that make it: their names, or true for all.",
    )  # fmt: skip
    unique_for = UniqueForField(
        required=False,
        help_text='"kept" only where the definition declares it: such tasks are not pruned.',
    )
    workers = Whole(
        required=False, min_value=1, max_value=MOST_DISTINCT_WORKERS,
        help_text="So many distinct workers must each run it.",
    )  # fmt: skip
    broadcast = Flag(required=False, help_text="Every worker alive on its queue runs it.")
    metadata = ObjectField(required=False, help_text="Travels with it; at most 16 KiB.")


class EnqueueOptions(ScheduleOptions):
    """The options of `.using()`."""

    run_after = NearMoment(required=False, allow_null=True)
    on_duplicate = serializers.ChoiceField(choices=["return", "raise", "replace"], required=False)
    restart = serializers.ChoiceField(
        choices=["failed", "all"], required=False, allow_null=True,
        help_text='Only with unique_for "kept".',
    )  # fmt: skip


class StoredOptions(ScheduleOptions):
    """The options that a schedule keeps: checked, and kept as they were given."""

    def to_internal_value(self, data: Any) -> Any:
        super().to_internal_value(data)
        return dict(data)


CHANGEABLE = frozenset(ChangeableOptions().fields)
OPTIONS = frozenset(EnqueueOptions().fields)


def _describe_fields() -> None:
    """What drf-spectacular says of the fields that are of no kind of its own."""
    from drf_spectacular.utils import extend_schema_field

    number = {"type": "number", "minimum": SHORTEST_BACKOFF, "maximum": LONGEST}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    policies = [
        {
            "type": "object",
            "properties": {"policy": {"type": "string", "enum": [name]}}
            | {each.name: number for each in fields(policy)}
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
    seconds = {"type": "number", "minimum": 0.001, "maximum": LONGEST_UNIQUE_FOR}
    extend_schema_field({"oneOf": [words, seconds]})(UniqueForField)
    key = {"type": "string", "minLength": 1, "maxLength": LONGEST_UNIQUE_KEY}
    names = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    all_arguments = {"type": "boolean", "enum": [True]}
    extend_schema_field({"oneOf": [key, names, all_arguments]})(UniqueKeyField)


try:
    _describe_fields()
except ImportError:  # pragma: no cover  (without the extra `api` there is no schema)
    pass
