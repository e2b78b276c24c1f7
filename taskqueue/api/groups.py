"""Groups of collected events: how many wait, and enqueueing them at once."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.describing import serializer_for
from taskqueue.api.fields import Reasoned, Strict, Text
from taskqueue.api.views import Digits
from taskqueue.engine.batches.collecting import LONGEST_GROUP
from taskqueue.engine.verbs import GROUP_VERBS
from taskqueue.monitoring.read_models.group import ShownBatch, ShownGroup, read_groups, shown_batch

MOST = 1000
LONGEST_DEFINITION = 255
FIRE = GROUP_VERBS["fire"]


class GroupQuery(Strict):
    """The filter of groups."""

    name = Text(required=False, max_length=LONGEST_DEFINITION, help_text="The name of a task.")
    limit = Digits(default=100, min_value=1, max_value=MOST, help_text="Groups, by name.")


class Groups(serializers.Serializer[Any]):
    """Groups by the names of their tasks."""

    results = serializer_for(ShownGroup)(many=True)


class GroupList(ApiView):
    """The groups that have events."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "groups"
    has_etag = True

    @endpoint("listGroups", answers={200: Groups}, query=GroupQuery)
    def get(self, request: Request) -> Response:
        """How many events wait in each; the events themselves are not shown."""
        name, limit = self.parameters.get("name", ""), self.parameters["limit"]
        return self.shown({"results": read_groups(name=name, limit=limit)})


class GroupToFire(Reasoned):
    """A group."""

    name = Text(max_length=LONGEST_DEFINITION, help_text="The name of a task.")
    group = Text(
        required=False, default="", allow_blank=True, max_length=LONGEST_GROUP,
        help_text="Of its groups; empty: the one without a name.",
    )  # fmt: skip


class Batches(serializers.Serializer[Any]):
    """The tasks that were enqueued."""

    results = serializer_for(ShownBatch)(many=True)


class GroupFire(ApiView):
    """Enqueueing the events of a group before it is due."""

    needs = {"POST": (VIEW_TASKS, *FIRE.permissions)}
    tag = "groups"

    @endpoint("fireGroup", answers={200: Batches}, body=GroupToFire, problems=(409,))
    def post(self, request: Request) -> Response:
        """Enqueue what a group has collected by now. 409 if that is nothing."""
        given = self.parameters

        def act() -> Response:
            fired = FIRE.act_by(
                request.user, given["name"], group=given["group"], reason=given["reason"]
            )
            return self.shown({"results": [shown_batch(batch) for batch in fired]})

        return self.idempotent(act)
