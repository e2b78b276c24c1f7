"""How one worker was asked to run."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field

from taskqueue.worker.queue_quotas import QueueChoice


def default_name() -> str:
    """A name that no other worker has: host, process and chance."""
    return f"{socket.gethostname()[:100]}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The flags of `runworker`. Times in seconds, memory in megabytes."""

    queues: QueueChoice = field(default_factory=lambda: QueueChoice({}))
    concurrency: int = 1
    pool: str = "process"
    name: str = field(default_factory=default_name)
    drain: bool = False
    max_tasks: int | None = None
    max_memory: float | None = None
    shutdown_timeout: float = 30.0
    poll_interval: float | None = None
    reload: bool = False
    show_progress: bool = False
