"""The address of one resource, and the addresses of the verbs on it, made from their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Reasoned
from taskqueue.api.headers import has_condition, has_part, part_of
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.control.verb import Verb

# Refuses a row by an exception. It is locked, so that what is checked stays until all is done.
Check = Callable[[Any], None]


class OneView(ApiView):
    """Shows one resource, or does a verb to it as the client has seen it."""

    has_etag = True
    is_conditional = True
    # The attributes that If-Match compares: all others change by themselves.
    compared: ClassVar[Sequence[str]]
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
        """Do the verb in one transaction if the check allows it, and show what came of it."""

        def done() -> Response:
            seen = self._seen(key, check)
            result = verb.act_by(self.request.user, key, seen=seen, **arguments)
            return self.outcome(verb, key, result)

        return self.idempotent(done)

    def _seen(self, key: Any, check: Check | None) -> Seen:
        """Return a test of whether a row is what If-Match names, and passes the check."""
        is_conditional = has_condition(self.request)
        if is_conditional:
            self.find(key)  # A pause makes the row of its queue: 404 then, and not 412.
        elif check is None:
            return None

        def test(row: Any) -> bool:
            if is_conditional and not has_part(self.request, self.part(self.find(key))):
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
    name = "".join(word.capitalize() for word in (first, verb.noun, *rest))
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
