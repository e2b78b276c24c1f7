"""Which of Django's tests say nothing about our backend, and why."""

from __future__ import annotations

CLASS = "asserts that the backend's class is DummyBackend"
LIST = "looks into DummyBackend's list `results`, which a database has not"
CLEAR = "is about DummyBackend.clear()"
SWITCH = "switches to DummyBackend in its own body, and asserts what that one does"

LEFT_OUT = {
    "TaskTestCase": {
        "test_using_correct_backend": CLASS,
        "test_get_backend": CLASS,
        "test_enqueue_task": LIST,
        "test_enqueue_task_async": LIST,
    },
    "DummyBackendTestCase": {
        "test_using_correct_backend": CLASS,
        "test_enqueue_task": LIST,
        "test_enqueue_task_async": LIST,
        "test_refresh_result": LIST,
        "test_refresh_result_async": LIST,
        "test_clear": CLEAR,
        "test_validate_on_enqueue": SWITCH,
        "test_validate_on_aenqueue": SWITCH,
    },
    "DummyBackendTransactionTestCase": {
        "test_doesnt_wait_until_transaction_commit_by_default": LIST,
    },
}
"""By class and test: the 13 of Django's 56 that are about the dummy backend itself."""

PICKLE = "the backport cannot pickle tasks"
LOGGER = "the backport's logger has another name"
MESSAGE = "the backport words the error otherwise"

LEFT_OUT_OF_BACKPORT = {
    "TaskTestCase": {
        "test_pickle_task": PICKLE,
        "test_pickle_task_result": PICKLE,
        "test_unpickle_arbitrary_string": PICKLE,
        "test_unpickle_non_task_object": PICKLE,
        "test_task_error_invalid_exception": LOGGER,
        "test_task_error_unknown_module": LOGGER,
        "test_run_after_in_decorator": MESSAGE,
    },
    "DummyBackendTestCase": {
        "test_enqueue_logs": LOGGER,
        "test_validate_disallowed_async_task": MESSAGE,
    },
}
"""What Django 6.1 added to, or names otherwise than, the backport for Django 5.2."""
