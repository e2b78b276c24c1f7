"""Call the URL of a heartbeat with the restricted HTTP client of webhooks."""

from __future__ import annotations

from taskqueue.engine.webhooks.checking import allowed_targets
from taskqueue.exceptions import GiveUp
from taskqueue.webhooks.client import NoAnswer, Refused, post


class Failed(GiveUp):
    """The URL could not be called, or answered with an error; the message contains no address.

    The next call comes soon. Failing calls are logged once, not each time.
    """

    _is_logged = True


def call(url: str) -> str:
    """Call a URL. Return the answer in words. Raises `Failed`."""
    try:
        answer = post(url, b"", {"Content-Type": "text/plain"}, allowed=allowed_targets())
    except (NoAnswer, Refused) as error:
        raise Failed(str(error)) from None
    said = f"It answered {answer.status}."
    if not 200 <= answer.status < 300:
        raise Failed(said)
    return said
