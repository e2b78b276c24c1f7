"""The audit: who did what by hand, to what, and why."""

from __future__ import annotations

from functools import partial

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_AUDITS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Moment, Text
from taskqueue.api.views import Digits, Paged, page, page_of, rows_after
from taskqueue.monitoring.read_models.audit import ShownAuditEntry, audit_entries
from taskqueue.monitoring.read_models.base import from_rows


class AuditQuery(Paged):
    """The filter of audit entries."""

    subject = Text(
        required=False, max_length=255,
        help_text="The id of a task or an operation, or the name of a queue, worker or schedule.",
    )  # fmt: skip
    actor = Text(required=False, max_length=150, help_text="The person who did it.")
    verb = Text(required=False, max_length=30, help_text="Such as `cancel` or `pause`.")
    since = Moment(required=False, help_text="Not what was done before.")


AuditEntries = page_of(ShownAuditEntry, "Audit entries, the newest first.")


class AuditList(ApiView):
    """The audit."""

    needs = {"GET": (VIEW_AUDITS,)}
    tag = "audit"
    has_etag = True

    @endpoint("listAudit", answers={200: AuditEntries}, query=AuditQuery)
    def get(self, request: Request) -> Response:
        """Audit entries, the newest first."""
        names = ("subject", "actor", "verb", "since")
        given = {name: self.parameters[name] for name in names if name in self.parameters}
        rows = audit_entries(**given)
        found = rows_after(rows, "-id", self.parameters, Digits().run_validation)
        return page(self, found, "id", partial(from_rows, ShownAuditEntry))
