"""The verbs for webhooks: signed messages about events, after Standard Webhooks 1.0.

Each is audited with `by` and `reason` in its own transaction.
"""

from taskqueue.engine.webhooks.deliveries import redeliver
from taskqueue.engine.webhooks.deliveries import send_test as test
from taskqueue.engine.webhooks.endpoints import Secret
from taskqueue.engine.webhooks.endpoints import create_endpoint as create
from taskqueue.engine.webhooks.endpoints import delete_endpoint as delete
from taskqueue.engine.webhooks.endpoints import disable_endpoint as disable
from taskqueue.engine.webhooks.endpoints import edit_endpoint as edit
from taskqueue.engine.webhooks.endpoints import enable_endpoint as enable
from taskqueue.engine.webhooks.endpoints import get_endpoint as get
from taskqueue.engine.webhooks.endpoints import rotate_secret as rotate
from taskqueue.engine.webhooks.replaying import replay

__all__ = [
    "Secret",
    "create",
    "delete",
    "disable",
    "edit",
    "enable",
    "get",
    "redeliver",
    "replay",
    "rotate",
    "test",
]
