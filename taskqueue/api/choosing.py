"""Which tasks a request means: ids, the fields of a filter, a search as the admin takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.utils.translation import override
from rest_framework import serializers

from taskqueue.api.fields import Flag, Moment, Strict, Text, Whole
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.filters import usable_by
from taskqueue.control import TaskFilter
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.definition import registry
from taskqueue.declarations.options import HIGHEST_PRIORITY, LOWEST_PRIORITY
from taskqueue.engine.control.filters import each_of
from taskqueue.engine.operations.asking import LONGEST_QUERY, MOST_IDS
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.searching import SearchError, parse

CANONICAL = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MOST_VALUES = 100
"""Of one property."""
MOST_IN_ALL, MOST_PATHS = 200, 20
"""Values of one filter, and paths in it: each is a condition of the statement."""
PATHS = ("arguments", "metadata")
WAYS = ("ids", "filter", "q", "everything")


class Id(serializers.UUIDField):
    """The id of a task, as it is written."""

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str) or not CANONICAL.fullmatch(data):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class Texts(serializers.ListField):
    """Texts, of which one fits."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("child", Text(max_length=LONGEST_QUERY))
        super().__init__(required=False, min_length=1, max_length=MOST_VALUES, **options)


class Paths(serializers.DictField):
    """By a dotted path, the texts of which one stands there."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=Texts(), required=False, **options)


class Filter(Strict):
    """Tasks that fit all that is given; of several values, one."""

    statuses = serializers.ListField(
        child=serializers.ChoiceField(choices=[each.value for each in TaskStatus]),
        required=False, min_length=1, max_length=len(TaskStatus),
    )  # fmt: skip
    name = Texts()
    name_prefix = Texts(help_text="How names begin.")
    words = Texts(help_text="Each is the name, its last part, or the unique key.")
    queue_name = Texts()
    worker = Texts(help_text="Who holds the task, or has held it.")
    error_class = Texts(help_text="The class of its error, with or without its module.")
    error_text = Texts(help_text="A part of the error's message.")
    unique_key = Texts()
    schedule = Texts(help_text="The name of the schedule that made it.")
    arguments = Paths(help_text="Such as `order.id`. Sensitive ones fit nothing.")
    metadata = Paths()
    lowest_priority = Whole(required=False, min_value=LOWEST_PRIORITY, max_value=HIGHEST_PRIORITY)
    highest_priority = Whole(required=False, min_value=LOWEST_PRIORITY, max_value=HIGHEST_PRIORITY)
    enqueued_after = Moment(required=False)
    enqueued_before = Moment(required=False)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Bound what the statement is made of."""
        paths = [texts for name in PATHS for texts in given.get(name, {}).values()]
        if len(paths) > MOST_PATHS:
            raise serializers.ValidationError(f"has more than {MOST_PATHS} paths in all.")
        lists = [value for value in given.values() if isinstance(value, list)]
        if sum(map(len, [*paths, *lists])) > MOST_IN_ALL:
            raise serializers.ValidationError(f"has more than {MOST_IN_ALL} values in all.")
        return given


class TaskChoice(Strict):
    """Exactly one way to say which tasks are meant."""

    ids = serializers.ListField(
        child=Id(), required=False, min_length=1, max_length=MOST_IDS, help_text="These tasks."
    )
    filter = Filter(required=False)
    q = Text(
        required=False, max_length=LONGEST_QUERY,
        help_text="A search, such as `status:failed queue:mail`.",
    )  # fmt: skip
    everything = Flag(required=False, help_text="true: all tasks, and that is meant.")


def chosen(given: Mapping[str, Any], user: Any) -> TaskFilter:
    """The filter that this user may use.

    Raises 422 where nothing, or more than one, is chosen, and 403 for what would tell too much.
    """
    ways = [way for way in WAYS if given.get(way) not in (None, False)]
    if len(ways) != 1:
        raise _refused(
            f"Say which tasks are meant by one of {', '.join(WAYS)}, not by {len(ways)} of them."
        )
    try:
        which = _read(ways[0], given)
    except (ValueError, TypeError) as error:  # SearchError is one.
        raise _refused(str(error)) from None
    return usable_by(which, user)


def exposed_only(which: TaskFilter) -> TaskFilter:
    """Those of the tasks whose types may be enqueued over REST. Raises 403 if there are none."""
    names = [each.name for each in registry.all() if each.options.api]
    given = which.given
    if "name" in given or "name_prefix" in given:
        whole = each_of(given.get("name", ()))
        beginnings = each_of(given.get("name_prefix", ()))
        names = [each for each in names if each in whole or each.startswith(beginnings)]
    if not names:
        told = "None of these task types may be enqueued over REST: none is marked api=True."
        raise Problem(403, "task_not_exposed", told)
    return replace(which, name=sorted(names), name_prefix="", everything=False)


def _read(way: str, given: Mapping[str, Any]) -> TaskFilter:
    if way == "ids":
        return TaskFilter(ids=given["ids"])
    if way == "filter":
        return TaskFilter(**given["filter"])
    if way == "everything":
        return TaskFilter(everything=True)
    with override("en"):
        which = parse(given["q"], now=now()).which
        if which.everything:
            raise SearchError("Nothing is searched for. Say everything: true if all are meant.")
    return which


def _refused(detail: str) -> Problem:
    return Problem(422, "invalid_filter", detail)
