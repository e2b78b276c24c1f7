"""The landing page."""

from __future__ import annotations

from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from project.models import SourceFile
from taskqueue import rules
from taskqueue.models import Schedule, Task, Worker, Workflow
from taskqueue.results.workflows import get_workflow

LARGEST = 15


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """Say what this is, how far it is, and what was found."""
    statuses = Task.objects.values("status").annotate(number=Count("id")).order_by("status")
    found = SourceFile.objects.aggregate(
        files=Count("id"), lines=Sum("lines"), words=Sum("words"), imports=Sum("imports")
    )
    newest = Workflow.objects.order_by("-id")
    context = {
        "statuses": statuses,
        "workers": Worker.objects.filter(status="running"),
        "schedules": [
            (schedule, rules.from_json(schedule.rule).text) for schedule in Schedule.objects.all()
        ],
        "workflows": map(get_workflow, newest.values_list("id", flat=True)[:LARGEST]),
        "found": found,
        "largest": SourceFile.objects.order_by("-lines", "path")[:LARGEST],
    }
    return render(request, "project/landing.html", context)
