"""Alerts: rules that people keep, acknowledging what fires, and the duty that workers serve.

Each verb is audited with `by` and `reason` in its own transaction. What code declares
(`@task(notify=...)`, the setting `ALERTS`) is edited there; it can be silenced by anybody who may.
"""

from taskqueue.engine.alerts.acknowledging import acknowledge
from taskqueue.engine.alerts.rule_verbs import create_rule as create
from taskqueue.engine.alerts.rule_verbs import delete_rule as delete
from taskqueue.engine.alerts.rule_verbs import edit_rule as edit
from taskqueue.engine.alerts.rule_verbs import send_test as test
from taskqueue.engine.alerts.rule_verbs import silence_rule as silence
from taskqueue.engine.alerts.rule_verbs import unsilence_rule as unsilence

__all__ = ["acknowledge", "create", "delete", "edit", "silence", "test", "unsilence"]
