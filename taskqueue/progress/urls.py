"""The address of progress, to be included under a prefix of the project's choice."""

from __future__ import annotations

from django.urls import path

from taskqueue.progress.views import look

app_name = "taskqueue_progress"
urlpatterns = [path("<str:token>/", look, name="look")]
