"""Our pages in a site of the project's own; Django's stands beside it without them."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

import taskqueue.admin

stock = admin.AdminSite()
taskqueue.admin.register(stock)
taskqueue.admin.unregister(stock)
ops = admin.AdminSite(name="ops")
taskqueue.admin.register(ops)
urlpatterns = [path("admin/", stock.urls), path("ops/", ops.urls)]
