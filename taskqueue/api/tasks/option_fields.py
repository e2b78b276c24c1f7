"""The options of a task in the body of a request: a field for each, within the bounds of REST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, ClassVar, NoReturn

from django.utils import timezone
from rest_framework import serializers

from taskqueue.api.fields import DescribedField, Flag, MomentAmongSeconds, OneOf, Strict, Text
from taskqueue.api.fields import Seconds as SecondsField
from taskqueue.api.fields import Whole as WholeField
from taskqueue.core.periods import WORDS
from taskqueue.core.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY, PRIORITY_NAMES
from taskqueue.core.retries import LONGEST, NUMBERS, POLICIES, Backoff
from taskqueue.declarations import option_kinds as kinds
from taskqueue.declarations import time_kinds
from taskqueue.declarations.arguments import LONGEST_UNIQUE_KEY
from taskqueue.declarations.option import Option, Use
from taskqueue.declarations.option_forms import backoff_from_json, exception_class
from taskqueue.declarations.options import options_for
from taskqueue.declarations.own_ids import OwnId
from taskqueue.declarations.per import Per
from taskqueue.declarations.priority_kind import PriorityKind
from taskqueue.declarations.run_options import DAY, YEAR
from taskqueue.exceptions import InvalidTask

# Seconds between two attempts, before jitter.
SHORTEST_BACKOFF = 1
# Seconds from now until the latest time in a request, and the longest `unique_for`.
LONGEST_DELAY = YEAR
MOST_CLASSES, LONGEST_CLASS_PATH = 50, 500
NUMBER = {"type": "number", "minimum": SHORTEST_BACKOFF, "maximum": LONGEST}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
FACTOR = {"type": "number", "minimum": 0, "maximum": LONGEST}


class BackoffField(DescribedField):
    """The name of a policy and its numbers: `{"policy": "fixed", "seconds": 5}`."""

    json_schema = {
        "oneOf": [
            {
                "type": "object",
                "properties": {
                    "policy": {"type": "string", "enum": [name]},
                    **{number.name: NUMBER for number in fields(policy)},
                    **({"factor": FACTOR} if hasattr(policy, "factor") else {}),
                    "jitter": SHARE,
                },
                "required": ["policy"],
                "additionalProperties": False,
            }
            for name, policy in POLICIES.items()
        ]
    }

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
            if number.name not in NUMBERS and getattr(policy, number.name) < SHORTEST_BACKOFF:
                raise serializers.ValidationError(
                    f"{number.name} must be at least {SHORTEST_BACKOFF} second over REST."
                )
        if policy.base_delay(1) < SHORTEST_BACKOFF:
            raise serializers.ValidationError(
                f"The first delay, factor times base, must be at least {SHORTEST_BACKOFF} second "
                "over REST."
            )
        return policy


class NearMoment(OneOf):
    """A time with its UTC offset, or seconds from now; at most a year ahead."""

    by_type = {str: MomentAmongSeconds(), float: SecondsField(max_value=LONGEST_DELAY)}

    def to_internal_value(self, data: Any) -> Any:
        when = super().to_internal_value(data)
        if isinstance(when, datetime) and when > timezone.now() + timedelta(seconds=LONGEST_DELAY):
            days = LONGEST_DELAY // DAY
            raise serializers.ValidationError(f"must be at most {days} days ahead over REST.")
        return when


class PriorityName(serializers.ChoiceField):
    """The name of a priority, in upper or lower case."""

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value(str(data).lower())


class PriorityField(OneOf):
    """A number, or the name of a priority."""

    by_type = {
        str: PriorityName(choices=list(PRIORITY_NAMES)),
        int: WholeField(min_value=LOWEST_PRIORITY, max_value=HIGHEST_PRIORITY),
    }


class ClassesField(serializers.ListField):
    """Paths of exception classes, which are not imported."""

    child = Text(max_length=LONGEST_CLASS_PATH)

    def to_internal_value(self, data: Any) -> list[type[BaseException]]:
        try:
            return [exception_class(path) for path in super().to_internal_value(data)]
        except InvalidTask as error:
            raise serializers.ValidationError(str(error).partition(": ")[2]) from None


class HoldWord(serializers.ChoiceField):
    """One of the words of `unique_for`."""

    def fail(self, key: str, **more: Any) -> NoReturn:
        raise serializers.ValidationError(
            "must be 'finished', 'started', 'kept' or a number of seconds."
        )


class UniqueForField(OneOf):
    """`finished`, `started` or `kept`, or seconds."""

    by_type = {
        str: HoldWord(choices=time_kinds.HoldTime().words),
        float: SecondsField(min_value=0.001, max_value=LONGEST_DELAY),
    }


class PeriodWord(serializers.ChoiceField):
    """One of the words of `unique_per`."""

    def fail(self, key: str, **more: Any) -> NoReturn:
        raise serializers.ValidationError(
            "must be 'minute', 'hour', 'day', 'week' or a number of seconds."
        )


class UniquePerField(OneOf):
    """`minute`, `hour`, `day` or `week`, or seconds."""

    by_type = {
        str: PeriodWord(choices=WORDS),
        float: SecondsField(min_value=1, max_value=LONGEST_DELAY),
    }


class EveryArgument(DescribedField):
    """The value true: the key consists of all arguments."""

    json_schema = {"type": "boolean", "enum": [True]}

    def to_internal_value(self, data: Any) -> bool:
        if data is not True:
            raise serializers.ValidationError("Not a valid string.")
        return True


class UniqueKeyField(OneOf):
    """The key, names of the arguments that it consists of, or true for all arguments."""

    by_type = {
        bool: EveryArgument(),
        list: serializers.ListField(child=Text(), min_length=1),
        str: Text(max_length=LONGEST_UNIQUE_KEY),
    }


class OwnIdField(DescribedField):
    """The id of the new task."""

    json_schema = {"type": "string", "format": "uuid"}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            raise serializers.ValidationError("Not a valid string.")
        try:
            return OwnId().check("id", data)
        except InvalidTask as error:
            raise serializers.ValidationError(str(error).removeprefix("id: ")) from None


class OptionsOf(Strict):
    """The options that a request may contain, each with the field of its kind."""

    # Options that may be given in one of these ways.
    uses: ClassVar[tuple[Use, ...]]
    left_out: ClassVar[frozenset[str]] = frozenset()

    def get_fields(self) -> dict[str, Any]:
        fields = {
            name: field_of(option)
            for use in self.uses
            for name, option in options_for(use | Use.REST).items()
            if name not in self.left_out
        }
        return fields | super().get_fields()


class ChangeableOptions(OptionsOf):
    """Options that may also be changed after the enqueue; null stands for the setting, or none."""

    uses = (Use.CHANGE, Use.EDIT)


class ScheduleOptions(OptionsOf):
    """The options of `.using()`, except those that the rule of a schedule decides.

    A request cannot choose a `unique_scope`, because it could then take the unique keys of any
    definition, even of one that is not marked `api=True`.
    """

    uses = (Use.SCHEDULE,)
    set_elsewhere: ClassVar[Mapping[str, str]] = {
        "unique_scope": "A request cannot set the scope of unique keys: the definition declares it "
        "in @task(unique_scope=...).",
        **{
            name: f"A request cannot set or lift {name}: the definition declares it in "
            f"@task({name}=...)."
            for name in ("debounce", "throttle", "capacity")
        },
    }


class EnqueueOptions(ScheduleOptions):
    """The options of `.using()`."""

    uses = (Use.USING,)


class StoredOptions(ScheduleOptions):
    """The options of a schedule: checked, and stored as they were sent."""

    def to_internal_value(self, data: Any) -> Any:
        super().to_internal_value(data)
        return dict(data)


def field_of(option: Option) -> serializers.Field[Any, Any, Any, Any]:
    """Return the field of a request that takes the option, within the bounds of REST."""
    field: Any
    bounds: dict[str, Any] = {}
    match option.kind:
        case kinds.Name(longest=longest):
            field, bounds = Text, {"max_length": longest}
        case PriorityKind():
            field = PriorityField
        case kinds.Whole(lowest=lowest, highest=highest):
            highest = int(option.rest_highest or highest)
            field, bounds = WholeField, {"min_value": lowest, "max_value": highest}
        case time_kinds.Seconds(lowest=lowest):
            field = SecondsField
            bounds = {"min_value": lowest, "max_value": option.rest_highest}
        case kinds.Choice(words=words):
            field, bounds = serializers.ChoiceField, {"choices": list(filter(None, words))}
        case kinds.WorkerNames():
            child = Text(max_length=kinds.LONGEST_WORKER_NAME)
            field = serializers.ListField
            bounds = {"child": child, "min_length": 1, "max_length": kinds.MOST_WORKERS}
        case kinds.ExceptionClasses():
            field, bounds = ClassesField, {"max_length": MOST_CLASSES}
        case kind:
            field = FIELDS[type(kind)]
    made: serializers.Field[Any, Any, Any, Any] = field(
        required=False, allow_null=option.default is None, help_text=option.help, **bounds
    )
    return made


# The fields of kinds without bounds of their own.
FIELDS: dict[type[kinds.Kind], Any] = {
    kinds.Switch: Flag,
    time_kinds.When: NearMoment,
    kinds.Policy: BackoffField,
    kinds.UniqueKeyKind: UniqueKeyField,
    time_kinds.HoldTime: UniqueForField,
    Per: UniquePerField,
    OwnId: OwnIdField,
    kinds.JsonObject: serializers.DictField,
}
CHANGEABLE = frozenset(ChangeableOptions().fields)
OPTIONS = frozenset(EnqueueOptions().fields)
