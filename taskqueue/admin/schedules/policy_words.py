"""The policies of a schedule, in people's language."""

from __future__ import annotations

from typing import Any

from django.utils.translation import pgettext_lazy

MISSED_WORDS: dict[str, Any] = {
    "skip": pgettext_lazy("missed runs", "skip"),
    "latest": pgettext_lazy("missed runs", "latest"),
    "all": pgettext_lazy("missed runs", "all"),
    "window": pgettext_lazy("missed runs", "window"),
}
"""By the value of `Missed`."""
OVERLAP_WORDS: dict[str, Any] = {
    "skip": pgettext_lazy("overlapping runs", "skip"),
    "queue_one": pgettext_lazy("overlapping runs", "queue_one"),
    "queue_all": pgettext_lazy("overlapping runs", "queue_all"),
    "cancel": pgettext_lazy("overlapping runs", "cancel"),
    "allow": pgettext_lazy("overlapping runs", "allow"),
}
"""By the value of `Overlap`."""
