"""The address of a verb, made from its row in the table of verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.etags import seen_as
from taskqueue.api.fields import Reasoned
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.control.verb import Verb

CONFLICTS = (404, 409, 412)


class Act(ApiView):
    """Do a verb to what the address names, and show what came of it."""

    verb: ClassVar[Verb]
    body: ClassVar[type[Serializer[Any]]] = Reasoned
    answers: ClassVar[Mapping[int, Any]]
    is_conditional = True

    def post(
        self, request: Request, task_id: str = "", name: str = "", operation_id: str = ""
    ) -> Response:
        given = self.validated_body(request, self.body)
        key = self.key_of(task_id or name or operation_id)
        reason = given.pop("reason")
        self.check(request, key, given)
        return self.idempotent(request, lambda: self.done(request, key, reason, given))

    def key_of(self, text: str) -> Any:
        """Return the key that the verb takes. Raises 404."""
        return text

    def check(self, request: Request, key: Any, given: dict[str, Any]) -> None:
        """Refuse what can be refused before anything is read; may change what is given."""

    def done(self, request: Request, key: Any, reason: str, given: Mapping[str, Any]) -> Response:
        """Do it, in a transaction."""
        result = self.verb.act_by(
            request.user, key, reason=reason, seen=self.seen(request, key), **given
        )
        return self.answer(request, key, result)

    def seen(self, request: Request, key: Any) -> Seen:
        """Return what If-Match says of the row, as verbs take it."""
        return seen_as(request, self.part)

    def part(self, row: Any) -> str:
        """Return the part of its ETag that stands for what people change."""
        raise NotImplementedError

    def answer(self, request: Request, key: Any, result: Any) -> Response:
        """Show what came of it."""
        raise NotImplementedError


def act_view(base: type[Act], verb: Verb, *, looks: Sequence[str], called: str = "") -> type[Act]:
    """Return the view of a verb, for those who may also look at what it is done to.

    `called` is the verb's name in addresses and the schema where that is not its own.
    """
    first, *rest = (called or verb.name).split("_")
    words = [first, verb.noun, *rest]
    operation_id = first + "".join(word.capitalize() for word in words[1:])

    def post(
        self: Any, request: Request, task_id: str = "", name: str = "", operation_id: str = ""
    ) -> Response:
        return base.post(self, request, task_id, name, operation_id)

    post.__doc__ = f"{verb.help[0].upper()}{verb.help[1:]}.\n\n{verb.details}"
    describing = describe(operation_id, answers=base.answers, body=base.body, problems=CONFLICTS)
    needs = {"POST": (*looks, *verb.permissions)}
    name = "".join(word.capitalize() for word in words)
    view: Any = type(name, (base,), {"verb": verb, "needs": needs, "post": describing(post)})
    return view  # type: ignore[no-any-return]
