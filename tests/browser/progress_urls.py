"""The URLs of a site where an end user watches a task."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.urls import path

from taskqueue.models import Task
from taskqueue.progress import progress_of
from taskqueue.results import get_result
from tests.urls import urlpatterns as others

PAGE = """<!doctype html>
<html lang="en"><head><title>Your export</title><link rel="icon" href="data:,"></head>
<body><main>{% load taskqueue %}{% task_progress progress %}</main></body></html>
"""


def export(request: HttpRequest) -> HttpResponse:
    task = Task.objects.latest("id")
    target = request.GET.get("redirect", "")
    progress = progress_of(get_result(task.id), redirect=target)
    return HttpResponse(Template(PAGE).render(RequestContext(request, {"progress": progress})))


def done(request: HttpRequest) -> HttpResponse:
    return HttpResponse(PAGE.partition("<body>")[0] + "<body><h1>Here it is</h1></body></html>")


urlpatterns = [*others, path("export/", export), path("done/", done)]
