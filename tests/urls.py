"""The URLs of the tests: the admin and the API, where pages are shown at all."""

from __future__ import annotations

from django.apps import apps
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = []
if apps.is_installed("django.contrib.admin"):
    # Workers do without, and need not load what stands behind: hundreds are started.
    from django.contrib import admin

    urlpatterns += [
        path("admin/", admin.site.urls),
        path("api/v1/", include("taskqueue.api.urls")),
        path("progress/", include("taskqueue.progress.urls")),
    ]
