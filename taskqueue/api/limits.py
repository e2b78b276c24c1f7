"""Limits: their running and waiting tasks, their keys, and overridden numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_LIMITS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Reasoned, Text, Whole
from taskqueue.api.problems import Problem
from taskqueue.api.views import LongPaged, OneView, act_view, page, page_of, rows_after
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.limits import MOST_A_WINDOW, MOST_AT_ONCE
from taskqueue.declarations.rates import LONGEST_RATE, rate_of
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.queue_verbs import LIMIT_VERBS
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Limit
from taskqueue.models.limit import Per
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.read_models.limit import (
    MOST_KEYS,
    PREFIX,
    ShownLimit,
    ShownLimitKey,
    keys_of,
    limit_rows,
    shown_limits,
)

Limits = page_of(ShownLimit, "Limits by name.")


@dataclass(frozen=True, kw_only=True)
class LimitKeyList:
    """Keys of a limit."""

    results: list[ShownLimitKey] = about(f"At most {MOST_KEYS}, those with the most waiting first.")


class Rate(Text):
    """A rate, such as `100/m`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=LONGEST_RATE, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            rate_of("rate", text, most=MOST_A_WINDOW)
        except InvalidTask as error:
            raise serializers.ValidationError(str(error), code="invalid_option") from None
        return text


class Override(Reasoned):
    """Numbers that hold in place of those that code declares."""

    concurrency = Whole(
        required=False, min_value=0, max_value=MOST_AT_ONCE,
        help_text="How many tasks may run at once; with 0, all tasks of the limit wait.",
    )  # fmt: skip
    rate = Rate(help_text="How many start in every window, such as 100/m.")


class LimitView(OneView):
    """One limit. If-Match compares its numbers, not its tasks."""

    needs = {"GET": (VIEW_LIMITS,)}
    tag = "limits"
    compared = (
        "pk", "concurrency", "rate", "seconds", "smooth", "concurrency_override", "rate_override",
        "seconds_override",
    )  # fmt: skip
    answers = {200: ShownLimit}

    def find(self, key: str) -> Limit:
        return limit_of(key)

    def details(self, found: Limit) -> ShownLimit:
        (shown,) = shown_limits([found])
        return shown

    def run(self, request: Request, key: str) -> Response:
        """Do the verb of this address."""
        refuse_limit_of_queue(key)
        return super().run(request, key)


class LimitList(LimitView):
    """All limits."""

    @endpoint("listLimits", answers={200: Limits}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Limits by name, with what runs and waits under each."""
        return page(self, rows_after(limit_rows(), "name", self.parameters), "name", shown_limits)


class LimitDetail(LimitView):
    """Looking at a limit, and changing its numbers."""

    needs = {
        "GET": (VIEW_LIMITS,),
        "PATCH": (VIEW_LIMITS, *LIMIT_VERBS["set"].permissions),
    }

    @endpoint("getLimit", answers={200: ShownLimit}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a limit that code declares, or that people have set for a queue."""
        return self.answer(name)

    @endpoint("changeLimit", answers={200: ShownLimit}, body=Override, problems=(404, 409, 412))
    def patch(self, request: Request, name: str) -> Response:
        """Have other numbers hold than those that code declares; what is left out stays.

        Nothing that runs is stopped. The limit of a queue is changed at the queue: 409.
        """
        refuse_limit_of_queue(name)
        return self.act(LIMIT_VERBS["set"], name, **self.parameters)


class LimitKeys(ApiView):
    """The keys of a limit."""

    needs = {"GET": (VIEW_LIMITS,)}
    tag = "limits"
    has_etag = True

    @endpoint("listLimitKeys", answers={200: LimitKeyList}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """The keys with the most tasks that wait, then those with the most that run."""
        return self.shown(LimitKeyList(results=keys_of(limit_of(name))))


LimitReset = act_view(LimitView, LIMIT_VERBS["reset"])


def limit_of(name: str) -> Limit:
    """Return the row of a limit. Raises 404."""
    rows = limit_rows()
    row: Limit | None = rows.filter(name=name).first() if is_storable(name) else None
    if row is None:
        hint = did_you_mean(name, list(rows.values_list("name", flat=True)[:1000]))
        raise Problem(404, "limit_not_found", f"There is no limit {name!r}.{hint}")
    return row


def refuse_limit_of_queue(name: str) -> None:
    """Raise 409 for the limit of a queue."""
    if limit_of(name).per == Per.QUEUE:
        queue = name.removeprefix(PREFIX)
        detail = f"This is the limit of the queue {queue!r}: change it there, queues/{queue}/."
        raise Problem(409, "limit_of_queue", detail)
