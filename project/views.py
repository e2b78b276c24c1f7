"""The landing page."""

from __future__ import annotations

from urllib.parse import urlencode

from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from project import tasks
from project.models import SourceFile
from taskqueue import rules
from taskqueue.models import Schedule, Task, Worker, Workflow
from taskqueue.progress import Progress, progress_of
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


@require_http_methods(["GET", "HEAD", "POST"])
def export(request: HttpRequest) -> HttpResponse:
    """Begin an export, or let whoever began it watch it, without an account in the admin."""
    if request.method == "POST":
        progress = progress_of(tasks.export.enqueue(), show_result=True)
        query = urlencode({"progress": progress.token})
        return redirect(f"{reverse('export')}?{query}")
    token = request.GET.get("progress")
    context = {"progress": Progress(token) if token else None}
    return render(request, "project/export.html", context)
