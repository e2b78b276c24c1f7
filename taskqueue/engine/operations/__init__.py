"""One verb done to many tasks in the background: asked for here, served by any worker."""

from taskqueue.engine.operations.asking import (
    cancel_operation,
    get_operation,
    held_count,
    operations,
    start_operation,
    which_of,
)
from taskqueue.engine.operations.walking import Estimate, estimate

__all__ = [
    "Estimate",
    "cancel_operation",
    "estimate",
    "get_operation",
    "held_count",
    "operations",
    "start_operation",
    "which_of",
]
