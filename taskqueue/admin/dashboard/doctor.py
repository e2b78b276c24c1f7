"""The doctor's page: each view runs an examination, and shows actions for its findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import OPERATE, VIEW_WORKERS
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.dashboard.remedies import Act, Look, Remedies
from taskqueue.admin.dashboard.sentences import sentence
from taskqueue.admin.denied import Denied
from taskqueue.admin.reports import LOOKING, report
from taskqueue.engine.connections import project_connection
from taskqueue.engine.examinations import request_examination
from taskqueue.monitoring.doctor import Finding, Severity, examine, visible_to, worst
from taskqueue.monitoring.doctor.work import found_on_hosts
from taskqueue.monitoring.notices import Situation

# The limit of each statement, so that a page need not wait longer.
PATIENCE = "1s"
# From worst to best: its word, and the style of its badge.
SEVERITIES: dict[Severity, tuple[Any, str]] = {
    Severity.PROBLEM: (gettext_lazy("problem"), "error"),
    Severity.WARNING: (gettext_lazy("warning"), "warning"),
    Severity.INFO: (gettext_lazy("info"), "scheduled"),
    Severity.OK: (gettext_lazy("ok"), "succeeded"),
}


@dataclass(frozen=True)
class ShownFinding:
    """A finding, with what this user can do about it."""

    check: str
    word: Any
    badge: str
    seen: str
    remedy: str
    looks: list[Look] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)


class DoctorPage(ReadOnlyAdmin):
    """A page for users who may view tasks and workers."""

    doctor_template = "admin/taskqueue/dashboard/doctor.html"

    def doctor_view(self, request: HttpRequest) -> HttpResponse:
        """Run the examination, and show the findings, worst first.

        A POST asks for one by a worker too, for the notices; it takes `OPERATE`.
        """
        if not (self.has_view_permission(request) and request.user.has_perm(VIEW_WORKERS)):
            raise Denied(*self.needed_to_view, VIEW_WORKERS)
        may_request = request.user.has_perm(OPERATE)
        if request.method == "POST":
            if not may_request:
                raise Denied(OPERATE)
            request_examination(project_connection())
            messages.info(
                request, _("If a worker is running, it updates the notices within seconds.")
            )
            return HttpResponseRedirect(self.links.url("dashboard_doctor"))
        if request.method not in LOOKING:
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        situation = Situation()
        own = examine(patience=PATIENCE)
        said = {finding.seen for finding in own}
        others = (each for each in found_on_hosts(situation) if _detail(each) not in said)
        found = visible_to(request.user, [*own, *others])
        found.sort(key=lambda finding: -finding.severity.rank)
        counted = Counter(finding.severity for finding in found)
        word, badge = SEVERITIES[worst(found)]
        shown = self._shown(request, found, situation)
        return report(
            self, request, self.doctor_template, _("Doctor"),
            worst=word,
            badge=badge,
            counts=[
                (SEVERITIES[severity][0], counted[severity])
                for severity in SEVERITIES
                if counted[severity]
            ],
            findings=shown,
            may_request=may_request,
            may_act=any(finding.acts for finding in shown),
        )  # fmt: skip

    def _shown(
        self, request: HttpRequest, found: list[Finding], situation: Situation
    ) -> list[ShownFinding]:
        remedies = Remedies(request.user, self.links, situation)
        return [
            ShownFinding(
                finding.check,
                *SEVERITIES[finding.severity],
                *(
                    (finding.seen, finding.remedy)
                    if finding.notice is None
                    else (sentence(finding.notice, self.links), finding.notice.translated_remedy)
                ),
                list(remedies.looks(finding.notice))
                if finding.notice and not _detail(finding)
                else [],
                list(remedies.acts(finding.notice)) if finding.notice else [],
            )
            for finding in found
        ]


def _detail(finding: Finding) -> str:
    """Return what a worker found on its host; empty for findings of this process."""
    notice = finding.notice
    return notice.detail if notice is not None and notice.code == "doctor" else ""
