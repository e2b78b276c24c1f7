"""Pages of long lists, and the cursor after which the next page begins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from taskqueue.api.fields import Strict, Text

PAGE, MOST = 50, 200
WHOLE = re.compile(r"-?[0-9]{1,18}")


class Digits(serializers.IntegerField):
    """A whole number in a query: digits only."""

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
    limit = Digits(
        required=False, default=PAGE, min_value=1, max_value=MOST, help_text="Rows of a page."
    )


class LongPaged(Paged):
    """The parameters of a page of short rows."""

    limit = Digits(
        required=False, default=100, min_value=1, max_value=MOST, help_text="Rows of a page."
    )


class NextPage(serializers.Serializer[Any]):
    """The fields of every page besides its rows."""

    next = serializers.URLField(
        allow_null=True, help_text="The address of the next page; null: this is the last."
    )


def page(
    request: Request, serializer: type[NextPage], results: Iterable[Any], following: str | None
) -> Any:
    """Serialise a page; the next one begins after the cursor."""
    url = None
    if following is not None:
        url = replace_query_param(request.build_absolute_uri(), "cursor", following)
    return serializer({"results": results, "next": url}).data
