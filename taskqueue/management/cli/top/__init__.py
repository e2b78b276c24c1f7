"""`top`: a live overview in the terminal."""

from taskqueue.management.cli.top.live import top

__all__ = ["top"]
