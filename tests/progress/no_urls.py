"""The URLs of a project that shows no progress."""

from typing import Any

urlpatterns: list[Any] = []
