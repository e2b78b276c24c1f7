"""The demo's findings in the admin: to be looked at, not to be changed."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from project.models import SourceFile


@admin.register(SourceFile)
class SourceFileAdmin(admin.ModelAdmin):
    """Browse what the tasks have found."""

    list_display = ("path", "kind", "lines", "words", "imports", "classes", "functions")
    list_filter = ("kind",)
    search_fields = ("path",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: SourceFile | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: SourceFile | None = None) -> bool:
        return False
