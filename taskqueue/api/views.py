"""Views of lists, of one resource, and of its verbs, which are made from their table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.utils.urls import replace_query_param

from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.describing import serializer_for
from taskqueue.api.fields import Reasoned, Strict, Text
from taskqueue.api.headers import has_condition, has_part, part_of
from taskqueue.api.problems import InvalidQuery
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.control.verb import Verb
from taskqueue.monitoring.read_models.base import json_form

R = TypeVar("R")
M = TypeVar("M", bound=Model)
PAGE, MOST = 50, 200
WHOLE = re.compile(r"-?[0-9]{1,18}")
# Refuses a row by an exception. The row is locked, so what was checked stays true.
Check = Callable[[Any], None]


class OneView(ApiView):
    """Shows one resource, or runs a verb on it as the client has seen it."""

    has_etag = True
    is_conditional = True
    # The attributes that If-Match compares; all others change by themselves.
    compared: ClassVar[Sequence[str]]
    # Whether the found object is the row that verbs lock, which then need not be read again.
    is_row = True
    verb: ClassVar[Any]
    body: ClassVar[type[Serializer[Any]]] = Reasoned
    answers: ClassVar[Mapping[int, Any]]

    def find(self, key: Any) -> Any:
        """Return the resource. Raises 404."""
        raise NotImplementedError

    def details(self, found: Any) -> Any:
        """Return what this user may see of it, as a read model."""
        return found

    def answer(self, key: Any, *, status: int = 200, **headers: str) -> Response:
        """Answer with the resource as it is now. Raises 404."""
        found = self.find(key)
        return self.shown(self.details(found), status=status, part=self.part(found), **headers)

    def part(self, found: Any) -> str:
        """Return the part of its ETag that If-Match compares."""
        return part_of([getattr(found, name) for name in self.compared])

    def act(self, verb: Verb, key: Any, check: Check | None = None, **arguments: Any) -> Response:
        """Run the verb in one transaction if the check allows it, and show the result."""

        def done() -> Response:
            result = verb.act_by(self.request.user, key, seen=self._seen(key, check), **arguments)
            return self.outcome(verb, key, result)

        return self.idempotent(done)

    def _seen(self, key: Any, check: Check | None) -> Seen:
        """Return a test of whether a row is what If-Match names, and passes the check."""
        is_conditional = has_condition(self.request)
        if is_conditional and not self.is_row:
            self.find(key)  # A pause makes the row of its queue: 404 then, and not 412.
        if not is_conditional and check is None:
            return None

        def test(row: Any) -> bool:
            if is_conditional:
                found = row if self.is_row else self.find(key)
                if not has_part(self.request, self.part(found)):
                    return False
            if check is not None:
                check(row)
            return True

        return test

    def outcome(self, verb: Verb, key: Any, result: Any) -> Response:
        """Show what came of a verb."""
        if verb.name == "delete":
            return Response(status=204)
        return self.answer(key, status=next(iter(self.answers)))

    def run(self, request: Request, key: str) -> Response:
        """Do the verb of this address."""
        return self.act(self.verb, key, **self.parameters)


def act_view(
    base: type[OneView], verb: Verb, *, called: str = "", **attributes: Any
) -> type[OneView]:
    """Return the view of a verb, for those who may also look at what it is done to.

    `called` is the verb's name in addresses and the schema where that is not its own.
    """

    def post(self: OneView, request: Request, key: str) -> Response:
        return self.run(request, key)

    post.__doc__ = f"{verb.help[0].upper()}{verb.help[1:]}.\n\n{verb.details}"
    first, *rest = (called or verb.name).split("_")
    words = (first, *verb.noun.split("_"), *rest)
    name = "".join(word.capitalize() for word in words)
    needs = {"POST": (*base.needs["GET"], *verb.permissions)}
    view: Any = type(name, (base,), {"verb": verb, "needs": needs, **attributes})
    declare = endpoint(
        f"{name[0].lower()}{name[1:]}",
        answers=view.answers,
        body=view.body,
        problems=(404, 409, 412),
    )
    view.post = declare(post)
    return view  # type: ignore[no-any-return]


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
