"""The addresses of a queue, which has a name before it has a row."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from django.contrib.admin.utils import quote

from taskqueue.admin.addresses import reverse


def act_url(name: str) -> str:
    """Where the buttons of that queue post to."""
    return reverse("admin:taskqueue_queue_act", args=[in_path(name)])


def queue_url(name: str) -> str:
    """The page of that queue, whether it has a row or not."""
    return f"{reverse('admin:taskqueue_queue_named')}?{urlencode({'name': name})}"


def in_path(name: str) -> str:
    """The name as the admin writes keys in addresses; of dots alone, a browser would go up."""
    return quote(name).replace(".", "_2E")


def from_path(text: str) -> str:
    """The name that `in_path` or the admin's own `quote` wrote."""
    return re.sub(r"_([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)
