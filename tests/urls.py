"""The URLs of the tests: the API, and the admin where it is installed."""

from __future__ import annotations

from django.apps import apps
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [path("api/v1/", include("taskqueue.api.urls"))]
if apps.is_installed("django.contrib.admin"):
    # Workers do without, and need not load it.
    from django.contrib import admin

    urlpatterns.append(path("admin/", admin.site.urls))
