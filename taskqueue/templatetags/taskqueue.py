"""Template tags for pages of the project."""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()


@register.inclusion_tag("taskqueue/progress/tag.html")
def task_progress(progress: Any, *, htmx: bool = False) -> dict[str, Any]:
    """Show a bar, a message and the state of a `Progress`; a small module keeps them up to date.

    With `htmx=True` the fragment asks for itself by htmx, which the page loads.
    """
    return {"shown": progress.look(), "url": progress.url, "htmx": htmx, "delay": 1}
