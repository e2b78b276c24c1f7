"""The verbs on webhooks: signed messages about events, by Standard Webhooks 1.0.

Each is audited with `by` and `reason` in its own transaction.
"""

from typing import TYPE_CHECKING

from taskqueue.core.lazy_names import lazy_names

if TYPE_CHECKING:
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

# Imported on demand: every worker imports this package for its tasks.
PLACES = {
    "Secret": "taskqueue.engine.webhooks.endpoints",
    "create": "taskqueue.engine.webhooks.endpoints:create_endpoint",
    "delete": "taskqueue.engine.webhooks.endpoints:delete_endpoint",
    "disable": "taskqueue.engine.webhooks.endpoints:disable_endpoint",
    "edit": "taskqueue.engine.webhooks.endpoints:edit_endpoint",
    "enable": "taskqueue.engine.webhooks.endpoints:enable_endpoint",
    "get": "taskqueue.engine.webhooks.endpoints:get_endpoint",
    "redeliver": "taskqueue.engine.webhooks.deliveries",
    "replay": "taskqueue.engine.webhooks.replaying",
    "rotate": "taskqueue.engine.webhooks.endpoints:rotate_secret",
    "test": "taskqueue.engine.webhooks.deliveries:send_test",
}

if not TYPE_CHECKING:  # A type checker would take any name to be there.
    __getattr__, __dir__ = lazy_names(__name__, PLACES)
