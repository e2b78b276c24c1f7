"""Our pages in a site of the project's own and in Django's."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

import taskqueue.admin

ops = admin.AdminSite(name="ops")
taskqueue.admin.register(ops)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]
