"""The URLs of the tests: the admin, where it is installed."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

urlpatterns: list[URLPattern | URLResolver] = []
if apps.is_installed("django.contrib.admin"):
    urlpatterns.append(path("admin/", admin.site.urls))
