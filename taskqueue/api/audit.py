"""The audit: who did what by hand, to what, and why."""

from __future__ import annotations

from functools import partial

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_AUDITS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Text
from taskqueue.api.views import Digits, Paged, page, page_of, rows_after
from taskqueue.engine.connections import database_alias
from taskqueue.models import Audit
from taskqueue.monitoring.read_models.attempt import ShownAuditEntry
from taskqueue.monitoring.read_models.base import from_rows


class AuditQuery(Paged):
    """The filter of audit entries."""

    subject = Text(
        required=False, max_length=255,
        help_text="The id of a task or an operation, or the name of a queue, worker or schedule.",
    )  # fmt: skip


AuditEntries = page_of(ShownAuditEntry, "Audit entries, the newest first.")


class AuditList(ApiView):
    """The audit."""

    needs = {"GET": (VIEW_AUDITS,)}
    tag = "audit"
    has_etag = True

    @endpoint("listAudit", answers={200: AuditEntries}, query=AuditQuery)
    def get(self, request: Request) -> Response:
        """Audit entries, the newest first."""
        rows = Audit.objects.using(database_alias())
        if "subject" in self.parameters:
            rows = rows.filter(subject=self.parameters["subject"])
        found = rows_after(rows, "-id", self.parameters, Digits().run_validation)
        return page(self, found, "id", partial(from_rows, ShownAuditEntry))
