"""Points in time, short: today's by the clock, others by the day too."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from taskqueue.admin.local_time import local_time


def short_moment(moment: datetime | None) -> SafeString:
    """The tooltip says it exactly; what is absolute need not be drawn anew each second."""
    if moment is None:
        return SafeString("")
    local = local_time(moment)
    shape = "%H:%M:%S" if local.date() == timezone.localdate() else "%m-%d %H:%M"
    return format_html(
        '<time class="taskqueue-moment" datetime="{0}" title="{0}">{1}</time>',
        local.isoformat(timespec="seconds"),
        local.strftime(shape),
    )
