"""The audit: who did what by hand, to what, and why."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_AUDITS
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Text
from taskqueue.api.paging import NextPage, Paged, page
from taskqueue.api.problems import InvalidQuery
from taskqueue.engine.connections import database_alias
from taskqueue.models import Audit

LARGEST_ID = 2**63 - 1


class AuditQuery(Paged):
    """Whose lines."""

    subject = Text(
        required=False, max_length=255,
        help_text="The id of a task or an operation, or the name of a queue, worker or schedule.",
    )  # fmt: skip


class AuditLine(serializers.Serializer[Any]):
    """One act."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField(help_text="Who did it.")
    noun = serializers.CharField(help_text="The kind of the subject, such as `task`.")
    verb = serializers.CharField()
    subject = serializers.CharField(help_text="What it was done to.")
    reason = serializers.CharField()
    before = serializers.CharField(help_text="The status that it had; empty: none is told.")
    detail = serializers.CharField(help_text="What was changed, and to what.")


class AuditLines(NextPage):
    """Lines, the newest first."""

    results = AuditLine(many=True)


class AuditList(ApiView):
    """The audit."""

    needs = {"GET": (VIEW_AUDITS,)}
    tag = "audit"
    has_etag = True

    @describe("listAudit", answers={200: AuditLines}, query=AuditQuery)
    def get(self, request: Request) -> Response:
        """What was done by hand, the newest first."""
        asked = self.validated_query(request, AuditQuery)
        rows = Audit.objects.using(database_alias()).order_by("-id")
        if "subject" in asked:
            rows = rows.filter(subject=asked["subject"])
        if asked["cursor"]:
            rows = rows.filter(id__lt=_cursor(asked["cursor"]))
        found = list(rows[: asked["limit"] + 1])
        kept = found[: asked["limit"]]
        following = str(kept[-1].id) if len(found) > len(kept) else None
        return self.shown(request, page(request, [_shown(each) for each in kept], following))


def _cursor(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text) <= LARGEST_ID:
        return int(text)
    raise InvalidQuery({"cursor": ["is none that this list has given."]})


def _shown(line: Audit) -> dict[str, Any]:
    return {name: getattr(line, name) for name in AuditLine._declared_fields}
