"""Select the tasks of a request: by a search, ids, or a parameter or field for each filter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.text import capfirst
from rest_framework import serializers

from taskqueue.api.fields import Flag, Moment, Strict, Text, Whole
from taskqueue.api.problems import InvalidQuery, Problem
from taskqueue.api.tasks.bodies import exposed_definitions
from taskqueue.api.views import MOST, PAGE, Digits
from taskqueue.control import TaskFilter
from taskqueue.core.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from taskqueue.core.states import TaskStatus
from taskqueue.engine.control.conditions import Described, FilterKind
from taskqueue.engine.control.filters import FILTERS, MOMENT, NUMBER, each_of
from taskqueue.engine.operations.asking import LONGEST_QUERY, MOST_IDS
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.searching.orders import is_cursor
from taskqueue.monitoring.searching.search import SearchNotAllowed, parse, permitted_search
from taskqueue.monitoring.searching.search_tokens import (
    LONGEST,
    MOST_VALUES,
    SearchError,
    Term,
    Value,
)
from taskqueue.monitoring.searching.sorting import MOST_SORTED, SORTINGS

MOST_WITH_ARGUMENTS = 50
# By the name of a parameter, the filter that it sets.
PARAMETERS = {filter.parameter: filter for filter in FILTERS.values() if filter.parameter}


class Page(Strict):
    """The tasks to list, and the page of them. All parameters have to match."""

    q = Text(
        required=False, default="", allow_blank=True, max_length=LONGEST,
        help_text="The search of the admin, such as `status:failed name:mail.* args.user.id:42`.",
    )  # fmt: skip
    limit = Digits(default=PAGE, min_value=1, max_value=MOST, help_text="Rows of a page.")
    before = Text(required=False, help_text="A cursor, from `next`.")
    after = Text(required=False, help_text="A cursor, from `previous`.")
    ordering = serializers.ChoiceField(
        choices=SORTINGS, required=False,
        help_text="With `finished`, finished tasks by their end; with `due`, waiting ones by when"
        " they are due. With `due`, `run_time`, `priority` and `name`, at most"
        f" {MOST_SORTED:,} of the matching tasks are sorted: see `sorted_among`.",
    )  # fmt: skip
    include = serializers.ChoiceField(
        choices=["arguments"], required=False,
        help_text=f"With it, a page has at most {MOST_WITH_ARGUMENTS} rows.",
    )  # fmt: skip

    def get_fields(self) -> dict[str, Any]:
        """Return a field for each filter that has a parameter, and the others."""
        filters = {name: _parameter_field(filter) for name, filter in PARAMETERS.items()}
        return {**super().get_fields(), **filters}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse cursors that would always return the first page, and too large pages."""
        if "before" in attrs and "after" in attrs:
            raise serializers.ValidationError({"after": "Use either before or after, not both."})
        for name in ("before", "after"):
            if name in attrs and not is_cursor(attrs[name]):
                raise serializers.ValidationError({name: "Not a cursor of this list."})
        if "include" in attrs and attrs["limit"] > MOST_WITH_ARGUMENTS:
            detail = f"May be at most {MOST_WITH_ARGUMENTS} with include=arguments."
            raise serializers.ValidationError({"limit": detail})
        return attrs


def _parameter_field(filter: Described) -> serializers.Field[Any, Any, Any, Any]:
    if filter.kind is MOMENT:
        return Moment(required=False, help_text=capfirst(f"{filter.help}."))
    if filter.kind is NUMBER:
        return Text(required=False, max_length=20, help_text=f"{filter.syntax}.")
    syntax = f"; {filter.syntax}" if filter.syntax else ""
    text = capfirst(f"{filter.help}{syntax}. Separate several values with commas.")
    return Text(required=False, max_length=LONGEST, help_text=text)


def which_of(query: Mapping[str, Any], user: Any) -> TaskFilter:
    """Return the filter of a list. Raises 400, and 403 for a search that is not permitted."""
    which = _searched(query["q"], "q")
    for name in filter(query.__contains__, PARAMETERS):
        more = _filters_of(name, query[name])
        if twice := more.keys() & which.given.keys() - {"everything"}:
            raise InvalidQuery({name: [f"{sorted(twice)[0]} is already part of q."]})
        which = replace(which, everything=False, **more)
    return usable_by(which, user)


def usable_by(which: TaskFilter, user: Any) -> TaskFilter:
    """Return the filter as this user may use it. Raises 403 for one that is not permitted."""
    try:
        return permitted_search(which, user)
    except SearchNotAllowed as error:
        raise Problem(403, "permission_denied", str(error)) from None


def _searched(text: str, name: str) -> TaskFilter:
    try:
        return parse(text, now=now()).which
    except SearchError as error:
        raise InvalidQuery({name: [str(error)]}) from None


def _filters_of(name: str, value: Any) -> dict[str, Any]:
    """Return the filters that a parameter sets, as its qualifier does in a search."""
    if isinstance(value, datetime):
        return {name: value}
    parts = [part for part in value.split(",") if part]
    if not parts:
        raise InvalidQuery({name: ["May not be empty."]})
    if len(parts) > MOST_VALUES:
        raise InvalidQuery({name: [f"Takes at most {MOST_VALUES} values."]})
    term = Term(PARAMETERS[name].qualifier, "", tuple(map(Value, parts)))
    return _searched(str(term), name).given


CANONICAL = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# Values of one filter, and paths in it: each is a condition of the statement.
MOST_IN_ALL, MOST_PATHS = 200, 20
PATHS = ("arguments", "metadata")
WAYS = ("ids", "filter", "q", "everything")


class Id(serializers.UUIDField):
    """The id of a task in its canonical form."""

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str) or not CANONICAL.fullmatch(data):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


def _texts(child: Any = None, help_text: str = "") -> serializers.ListField:
    """Return a field for several texts, of which one has to match."""
    return serializers.ListField(
        child=child or Text(max_length=LONGEST_QUERY),
        required=False,
        min_length=1,
        max_length=MOST_VALUES,
        help_text=help_text,
    )


NOT_IN_BODIES = frozenset({"ids", "error_path", "arguments_of_unknown", "everything"})
PRIORITY = {"min_value": LOWEST_PRIORITY, "max_value": HIGHEST_PRIORITY}


class Filter(Strict):
    """Tasks that match all given filters; of the values of a filter, one has to match."""

    def get_fields(self) -> dict[str, Any]:
        """Return a field for each filter."""
        return {
            name: _field(filter) for name, filter in FILTERS.items() if name not in NOT_IN_BODIES
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Bound the size of the statement."""
        paths = [texts for name in PATHS for texts in attrs.get(name, {}).values()]
        if len(paths) > MOST_PATHS:
            raise serializers.ValidationError(f"Contains more than {MOST_PATHS} paths.")
        lists = [value for value in attrs.values() if isinstance(value, list)]
        if sum(map(len, [*paths, *lists])) > MOST_IN_ALL:
            raise serializers.ValidationError(f"Contains more than {MOST_IN_ALL} values.")
        return attrs


def _field(filter: Described) -> serializers.Field[Any, Any, Any, Any]:
    text = capfirst(f"{filter.help}.")
    match filter.kind:
        case FilterKind.LIST:
            statuses = serializers.ChoiceField(choices=[status.value for status in TaskStatus])
            return _texts(statuses, text)
        case FilterKind.PATHS:
            return serializers.DictField(child=_texts(), required=False, help_text=text)
        case FilterKind.NUMBER:
            return Whole(required=False, help_text=text, **PRIORITY)
        case FilterKind.MOMENT:
            return Moment(required=False, help_text=text)
        case _:
            return _texts(help_text=text)


class TaskChoice(Strict):
    """Tasks, chosen in exactly one way."""

    ids = serializers.ListField(
        child=Id(), required=False, min_length=1, max_length=MOST_IDS, help_text="Task ids."
    )
    filter = Filter(required=False)
    q = Text(
        required=False, max_length=LONGEST_QUERY,
        help_text="A search, such as `status:failed queue:mail`.",
    )  # fmt: skip
    everything = Flag(required=False, help_text="Choose all tasks: must be true.")


def chosen(choice: Mapping[str, Any], user: Any) -> TaskFilter:
    """Return the filter as this user may use it.

    Raises 422 unless exactly one way is used, and 403 for a search that is not permitted.
    """
    ways = [way for way in WAYS if choice.get(way) not in (None, False)]
    try:
        if len(ways) != 1:
            names = ", ".join(WAYS)
            raise ValueError(f"Choose tasks by exactly one of {names}, not by {len(ways)}.")
        which = _read(ways[0], choice[ways[0]])
    except (ValueError, TypeError) as error:  # SearchError is one.
        raise Problem(422, "invalid_filter", str(error)) from None
    return usable_by(which, user)


def _read(way: str, value: Any) -> TaskFilter:
    if way == "filter":
        return TaskFilter(**value)
    if way != "q":
        return TaskFilter(**{way: value})
    which = parse(value, now=now()).which
    if which.everything:
        raise SearchError("The search is empty. Use everything: true to choose all tasks.")
    return which


def exposed_only(which: TaskFilter) -> TaskFilter:
    """Narrow the filter to task types that may be enqueued over REST. Raises 403 for none."""
    names = [definition.name for definition in exposed_definitions()]
    filters = which.given
    if "name" in filters or "name_prefix" in filters:
        whole = each_of(filters.get("name", ()))
        beginnings = each_of(filters.get("name_prefix", ()))
        names = [name for name in names if name in whole or name.startswith(beginnings)]
    if not names:
        detail = "None of these task types is marked api=True, so none may be enqueued over REST."
        raise Problem(403, "task_not_exposed", detail)
    return replace(which, name=sorted(names), name_prefix="", everything=False)
