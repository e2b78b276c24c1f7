"""The tests' URLs, with those of django-grappelli."""

from __future__ import annotations

from django.urls import include, path

from tests.urls import urlpatterns as own

urlpatterns = [path("grappelli/", include("grappelli.urls")), *own]
