"""Alerts: rules that people keep, acknowledging what fires, and the duty that workers serve.

Each verb is audited with `by` and `reason` in its own transaction. Rules that code declares
(`@task(notify=...)`, the setting `ALERTS`) can be silenced here, but only edited in the code.
"""

from typing import TYPE_CHECKING

from taskqueue.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from taskqueue.engine.alerts.acknowledging import acknowledge
    from taskqueue.engine.alerts.rule_verbs import create_rule as create
    from taskqueue.engine.alerts.rule_verbs import delete_rule as delete
    from taskqueue.engine.alerts.rule_verbs import edit_rule as edit
    from taskqueue.engine.alerts.rule_verbs import send_test as test
    from taskqueue.engine.alerts.rule_verbs import silence_rule as silence
    from taskqueue.engine.alerts.rule_verbs import unsilence_rule as unsilence

__all__ = ["acknowledge", "create", "delete", "edit", "silence", "test", "unsilence"]

# Imported on demand: every worker imports this package for its tasks.
PLACES = {
    "acknowledge": "taskqueue.engine.alerts.acknowledging",
    "create": "taskqueue.engine.alerts.rule_verbs:create_rule",
    "delete": "taskqueue.engine.alerts.rule_verbs:delete_rule",
    "edit": "taskqueue.engine.alerts.rule_verbs:edit_rule",
    "silence": "taskqueue.engine.alerts.rule_verbs:silence_rule",
    "test": "taskqueue.engine.alerts.rule_verbs:send_test",
    "unsilence": "taskqueue.engine.alerts.rule_verbs:unsilence_rule",
}

if not TYPE_CHECKING:  # A type checker would take any name to be there.
    __getattr__, __dir__ = lazy_names(__name__, PLACES)
