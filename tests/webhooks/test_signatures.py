"""Signatures, verified by the library of the specification."""

from __future__ import annotations

import time

import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from taskqueue.core.webhook_signatures import new_secret, sign, signed_headers

BODY = '{"type":"task.failed","data":{"name":"gr\u00fc\u00dfe"}}'.encode()


def signed(*secrets: str, body: bytes = BODY) -> dict[str, str]:
    return signed_headers(secrets, message_id="msg_1", timestamp=int(time.time()), body=body)


def test_the_specification_own_library_verifies_a_message() -> None:
    secret = new_secret()
    assert secret.startswith("whsec_")
    assert Webhook(secret).verify(BODY, signed(secret))["type"] == "task.failed"


def test_during_a_rotation_both_secrets_verify() -> None:
    new, old = new_secret(), new_secret()
    headers = signed(new, old)
    assert len(headers["webhook-signature"].split()) == 2
    for secret in (new, old):
        Webhook(secret).verify(BODY, headers)


@pytest.mark.parametrize("change", ["body", "id", "timestamp", "secret"])
def test_a_changed_message_is_not_verified(change: str) -> None:
    secret = new_secret()
    headers, body = signed(secret), BODY
    if change == "body":
        body = BODY.replace(b"failed", b"passed")
    elif change == "secret":
        secret = new_secret()
    elif change == "id":
        headers["webhook-id"] = "msg_2"
    else:
        headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) + 1)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, headers)


def test_the_example_of_the_specification_is_met() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    message_id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    found = sign(secret, message_id=message_id, timestamp=1614265330, body=body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
