"""The addresses of the demo project."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from project.views import export, landing

urlpatterns = [
    path("", landing, name="landing"),
    path("export/", export, name="export"),
    path("progress/", include("taskqueue.progress.urls")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("taskqueue.api.urls")),
]
