"""The audit: who did what by hand, to what, and why."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_AUDITS
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Text
from taskqueue.api.paging import NextPage, Paged, page
from taskqueue.api.problems import InvalidQuery
from taskqueue.api.serializing import serializer_for
from taskqueue.engine.connections import database_alias
from taskqueue.models import Audit
from taskqueue.monitoring.read_models.audit import ShownAuditEntry, audit_entries

LARGEST_ID = 2**63 - 1


class AuditQuery(Paged):
    """Which audit entries."""

    subject = Text(
        required=False, max_length=255,
        help_text="The id of a task or an operation, or the name of a queue, worker or schedule.",
    )  # fmt: skip


AuditEntryJSON = serializer_for(ShownAuditEntry)


class AuditEntries(NextPage):
    """Audit entries, the newest first."""

    results = AuditEntryJSON(many=True)


class AuditList(ApiView):
    """The audit."""

    needs = {"GET": (VIEW_AUDITS,)}
    tag = "audit"
    has_etag = True

    @describe("listAudit", answers={200: AuditEntries}, query=AuditQuery)
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
        return self.shown(request, page(request, AuditEntries, audit_entries(kept), following))


def _cursor(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text) <= LARGEST_ID:
        return int(text)
    raise InvalidQuery({"cursor": ["is none that this list has given."]})
