"""Why a task stands where it stands, in words."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from taskqueue.admin.display import moment
from taskqueue.monitoring.why import Reason, why


def sentence(reason: Reason) -> SafeString:
    """The reason as a sentence, in the language of the page."""
    return format_html(gettext(reason.template), **reason.values(_shown))


def why_sentences(task: Any) -> list[SafeString]:
    """What keeps the task from running, who holds it, or how it ended."""
    return [sentence(reason) for reason in why(task)]


def _shown(value: Any) -> Any:
    return moment(value) if isinstance(value, datetime) else value
