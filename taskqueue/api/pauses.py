"""Pauses of definitions and of everything."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_QUEUES
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.describing import serializer_for
from taskqueue.api.fields import Reasoned
from taskqueue.api.queues import Pause
from taskqueue.api.views import OneView, act_view
from taskqueue.engine.control.queue_verbs import ALL_VERBS, DEFINITION_VERBS
from taskqueue.monitoring.read_models.pause import ShownPauseState, pause_of, read_pauses


class Pauses(serializers.Serializer[Any]):
    """The pauses that last, that of everything first."""

    results = serializer_for(ShownPauseState)(many=True)


class PauseList(ApiView):
    """All pauses but those of queues."""

    needs = {"GET": (VIEW_QUEUES,)}
    tag = "pauses"
    has_etag = True

    @endpoint("listPauses", answers={200: Pauses})
    def get(self, request: Request) -> Response:
        """Return the paused definitions; queues tell of their own pauses."""
        return self.shown({"results": read_pauses()})


class PauseView(OneView):
    """The pause of one definition, whether or not it lasts."""

    needs = {"GET": (VIEW_QUEUES,)}
    tag = "pauses"
    is_row = False
    compared = ("definition", "paused_at", "paused_until", "paused_by", "pause_reason")
    answers = {200: ShownPauseState}

    def find(self, key: str | None) -> ShownPauseState:
        return pause_of(key)


class PauseDetail(PauseView):
    """The pause of one definition."""

    @endpoint("getDefinitionPause", answers={200: ShownPauseState})
    def get(self, request: Request, name: str) -> Response:
        """Return whether a definition is paused, of any name."""
        return self.answer(name)


class EverythingView(PauseView):
    """The pause of everything."""

    def find(self, key: str | None) -> ShownPauseState:
        return pause_of(None)


BODIES = {"pause": Pause, "pause_all": Pause}
DEFINITION_ACTS = {
    name: act_view(PauseView, verb, body=BODIES.get(name, Reasoned))
    for name, verb in DEFINITION_VERBS.items()
}


def _everything_view(name: str) -> type[ApiView]:
    """Return the view of a verb on everything: its address has no key."""
    verb = ALL_VERBS[name]
    view: Any = type(
        name, (EverythingView,),
        {"verb": verb, "needs": {"POST": (VIEW_QUEUES, *verb.permissions)}},
    )  # fmt: skip

    def post(self: EverythingView, request: Request) -> Response:
        return self.act(self.verb, "", **self.parameters)

    post.__doc__ = f"{verb.help[0].upper()}{verb.help[1:]}.\n\n{verb.details}"
    called = "pauseEverything" if name == "pause_all" else "resumeEverything"
    declare = endpoint(
        called, answers=view.answers, body=BODIES.get(name, Reasoned), problems=(409, 412)
    )
    view.post = declare(post)
    return view  # type: ignore[no-any-return]


class EverythingDetail(EverythingView):
    """Whether everything is paused."""

    @endpoint("getPauseOfEverything", answers={200: ShownPauseState})
    def get(self, request: Request) -> Response:
        """Return whether everything is paused."""
        return self.answer(None)


PAUSE_EVERYTHING, RESUME_EVERYTHING = map(_everything_view, ALL_VERBS)
