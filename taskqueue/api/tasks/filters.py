"""Which tasks a list is asked for: the admin's search, or a parameter for each qualifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import override
from rest_framework import serializers

from taskqueue.api.fields import Moment, Strict, Text
from taskqueue.api.paging import Digits
from taskqueue.api.problems import InvalidQuery, Problem
from taskqueue.control import TaskFilter
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.monitoring.searching import (
    SearchError,
    SearchNotAllowed,
    parse,
    permitted_search,
)
from taskqueue.monitoring.searching.orders import is_cursor
from taskqueue.monitoring.searching.search_tokens import LONGEST, MOST_VALUES, Term, Value

PAGE, MOST, MOST_WITH_ARGUMENTS = 50, 200, 50
QUALIFIERS = {
    "id": "id",
    "name": "name",
    "queue_name": "queue",
    "status": "status",
    "worker": "worker",
    "error": "error",
    "key": "key",
    "schedule": "schedule",
    "priority": "priority",
}
"""The parameters, and the qualifiers that say the same."""
MOMENTS = ("enqueued_after", "enqueued_before")


def _several(meaning: str) -> Any:
    return Text(
        required=False, max_length=LONGEST, help_text=f"{meaning} Several with a comma between."
    )


class Which(Strict):
    """Which tasks: all that is given has to fit."""

    q = Text(
        required=False, default="", allow_blank=True, max_length=LONGEST,
        help_text="The search of the admin, such as `status:failed name:mail.* args.user.id:42`.",
    )  # fmt: skip
    id = _several("Ids.")
    name = _several("Names, or with a star at the end how they begin.")
    queue_name = _several("Queues.")
    status = _several("Statuses.")
    worker = _several("Workers that hold it, or have held it.")
    error = _several("Classes of errors, whole or their last part.")
    key = _several("Unique keys.")
    schedule = _several("Schedules that made it.")
    priority = Text(required=False, max_length=20, help_text="5, >5, <=0 or 1..10.")
    enqueued_after = Moment(required=False)
    enqueued_before = Moment(required=False)


class Page(Which):
    """Which tasks, and which page of them."""

    limit = Digits(
        required=False, default=PAGE, min_value=1, max_value=MOST, help_text="Rows of a page."
    )
    before = Text(required=False, help_text="A cursor: `next` leads there.")
    after = Text(required=False, help_text="A cursor: `previous` leads there.")
    include = serializers.ChoiceField(
        choices=["arguments"], required=False,
        help_text=f"Then a page has at most {MOST_WITH_ARGUMENTS} rows.",
    )  # fmt: skip

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse what would give the first page again and again, and pages that are too large."""
        if "before" in attrs and "after" in attrs:
            raise serializers.ValidationError({"after": "stands beside before: give one of them."})
        for name in ("before", "after"):
            if name in attrs and not is_cursor(attrs[name]):
                raise serializers.ValidationError({name: "is no cursor of this list."})
        if "include" in attrs and attrs["limit"] > MOST_WITH_ARGUMENTS:
            told = f"is at most {MOST_WITH_ARGUMENTS} where arguments are included."
            raise serializers.ValidationError({"limit": told})
        return attrs


def which_of(given: Mapping[str, Any], user: Any) -> TaskFilter:
    """The filter, as far as this user may search. Raises 400, and 403 for what would tell more."""
    with override("en"):
        which = _searched(given["q"], "q")
        for name in QUALIFIERS:
            if given.get(name) is not None:
                which = _narrowed(which, _parameter(name, given[name]), name)
    for name in MOMENTS:
        if name in given:
            which = _narrowed(which, {name: given[name]}, name)
    return usable_by(which, user)


def usable_by(which: TaskFilter, user: Any) -> TaskFilter:
    """Return the filter as this user may use it. Raises 403 for one that would tell too much."""
    try:
        with override("en"):
            return permitted_search(which, user)
    except SearchNotAllowed as error:
        raise Problem(403, "permission_denied", str(error)) from None


def _searched(text: str, name: str) -> TaskFilter:
    connection = project_connection()
    try:
        return parse(text, now=dialect_for(connection).now(connection)).which
    except SearchError as error:
        raise InvalidQuery({name: [str(error)]}) from None


def _parameter(name: str, text: str) -> dict[str, Any]:
    """What the parameter adds to the filter, as its qualifier does."""
    parts = [each for each in text.split(",") if each]
    if not parts:
        raise InvalidQuery({name: ["may not be empty."]})
    if len(parts) > MOST_VALUES:
        raise InvalidQuery({name: [f"takes at most {MOST_VALUES} values."]})
    term = Term(QUALIFIERS[name], "", tuple(map(Value, parts)))
    given: dict[str, Any] = _searched(str(term), name).given
    return given


def _narrowed(which: TaskFilter, more: Mapping[str, Any], name: str) -> TaskFilter:
    known = which.given
    if twice := more.keys() & known.keys() - {"everything"}:
        raise InvalidQuery({name: [f"{sorted(twice)[0]} stands in q already."]})
    return replace(which, everything=False, **more)
