"""Pages of long lists, and the cursor after which the next page begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from taskqueue.api.base import ApiView
from taskqueue.api.describing import serializer_for
from taskqueue.api.fields import Strict, Text
from taskqueue.api.problems import InvalidQuery
from taskqueue.monitoring.read_models.base import json_form

R = TypeVar("R")
M = TypeVar("M", bound=Model)

PAGE, MOST = 50, 200
WHOLE = re.compile(r"-?[0-9]{1,18}")


class Digits(serializers.IntegerField):
    """A whole number in a query, which may be left out: digits only."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("min_value", 0)
        super().__init__(required=False, **options)

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, str) or not WHOLE.fullmatch(data):
            self.fail("invalid")
        return super().to_internal_value(data)


class Paged(Strict):
    """The parameters of a page."""

    cursor = Text(
        required=False, default="", max_length=500, allow_blank=True,
        help_text="The cursor of a page, from `next`; empty: the first page.",
    )  # fmt: skip
    limit = Digits(default=PAGE, min_value=1, max_value=MOST, help_text="Rows of a page.")


class LongPaged(Paged):
    """The parameters of a page of short rows."""

    limit = Digits(default=100, min_value=1, max_value=MOST, help_text="Rows of a page.")


class NextPage(serializers.Serializer[Any]):
    """The fields of every page besides its rows."""

    next = serializers.URLField(
        allow_null=True, help_text="The address of the next page; null: this is the last."
    )


def page_of(model: type[Any], text: str) -> type[NextPage]:
    """Make the serializer of a page of read models; the text describes it."""
    row = serializer_for(model)
    return type(f"{row.__name__}Page", (NextPage,), {"results": row(many=True), "__doc__": text})


def rows_after(
    rows: QuerySet[M], key: str, query: Mapping[str, Any], parse: Callable[[str], Any] = str
) -> list[M]:
    """The rows behind the cursor of the query, one more than fit on its page.

    `key` is a unique column to order by, as of `order_by`. Raises `InvalidQuery` for a cursor that
    `parse` refuses by a ValueError.
    """
    name = key.removeprefix("-")
    if query["cursor"]:
        try:
            cursor = parse(query["cursor"])
        except (ValueError, serializers.ValidationError):
            raise InvalidQuery({"cursor": ["is none that this list has given."]}) from None
        rows = rows.filter(**{f"{name}__{'gt' if name == key else 'lt'}": cursor})
    return list(rows.order_by(key)[: query["limit"] + 1])


def page(
    view: ApiView,
    rows: Sequence[R],
    key: str,
    show: Callable[[Sequence[R]], Iterable[Any]] = list,
) -> Response:
    """Answer with the page of these rows; a row too many says that another page follows."""
    kept, url = rows[: view.parameters["limit"]], None
    if len(rows) > len(kept):
        cursor = str(json_form(getattr(kept[-1], key)))
        url = replace_query_param(view.request.build_absolute_uri(), "cursor", cursor)
    return view.shown({"results": show(kept), "next": url})
