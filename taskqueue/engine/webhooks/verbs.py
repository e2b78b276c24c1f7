"""The table of verbs on endpoints of webhooks and on their deliveries."""

from __future__ import annotations

from functools import partial

from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import MANAGE_WEBHOOKS
from taskqueue.engine.control.verb import Verb, verb_table
from taskqueue.engine.webhooks.deliveries import redeliver, send_test
from taskqueue.engine.webhooks.endpoints import (
    create_endpoint,
    delete_endpoint,
    disable_endpoint,
    edit_endpoint,
    enable_endpoint,
    rotate_secret,
)
from taskqueue.engine.webhooks.replaying import replay

webhook_verb = partial(Verb, noun="webhook", permissions=(MANAGE_WEBHOOKS,))

WEBHOOK_VERBS = verb_table(
    webhook_verb(
        name="create",
        function=create_endpoint,
        label=_("Create"),
        entry=_("create webhook endpoint"),
        done=_("Endpoint created."),
        help="create an endpoint; its secret is shown once",
    ),
    webhook_verb(
        name="edit",
        function=edit_endpoint,
        label=_("Edit"),
        entry=_("edit webhook endpoint"),
        done=_("Endpoint %(name)s edited."),
        help="change the URL of an endpoint, or the events that it receives",
    ),
    webhook_verb(
        name="enable",
        function=enable_endpoint,
        label=_("Enable"),
        entry=_("enable webhook endpoint"),
        effect=_("It receives events from now on. Replay sends those that it has missed."),
        done=_("Endpoint %(name)s enabled."),
        help="send events to an endpoint again, from now on",
        details="409 if it is enabled. `replay` sends what it has missed.",
    ),
    webhook_verb(
        name="disable",
        function=disable_endpoint,
        label=_("Disable"),
        entry=_("disable webhook endpoint"),
        effect=_("Nothing more is sent to it; what waits to be sent is cancelled."),
        done=_("Endpoint %(name)s disabled."),
        help="disable an endpoint: it receives nothing more, and waiting deliveries are cancelled",
        details="409 if it is disabled.",
    ),
    webhook_verb(
        name="rotate",
        function=rotate_secret,
        label=_("Rotate secret"),
        entry=_("rotate secret of webhook endpoint"),
        effect=_("It gets a new secret, which is shown once. The old one signs too for a day."),
        done=_("Endpoint %(name)s has a new secret."),
        help="give an endpoint a new secret, which is shown once",
        details="For a day, messages are signed with the old one too.",
    ),
    webhook_verb(
        name="test",
        function=send_test,
        label=_("Send a test"),
        entry=_("test webhook endpoint"),
        done=_("A test is sent to endpoint %(name)s."),
        help="send a test to an endpoint, also to one that is disabled",
    ),
    webhook_verb(
        name="redeliver",
        function=redeliver,
        label=_("Redeliver"),
        entry=_("redeliver webhook"),
        done=_("Delivery %(name)s is sent again."),
        help="send a delivery again, with the same webhook-id",
        details="409 if it waits to be sent, or its endpoint is disabled.",
    ),
    webhook_verb(
        name="replay",
        function=replay,
        label=_("Replay"),
        entry=_("replay events to webhook endpoint"),
        effect=_("It is told again of all events since that time, as far as they are kept."),
        done=_("Events are sent again to endpoint %(name)s."),
        help="send an endpoint all events since a time again, as far as they are kept",
        details="Workers do it in the background, as an operation. 409 if it is disabled.",
    ),
    webhook_verb(
        name="delete",
        function=delete_endpoint,
        label=_("Delete"),
        entry=_("delete webhook endpoint"),
        effect=_("It is deleted with its secrets and its deliveries."),
        done=_("Endpoint %(name)s deleted."),
        help="delete an endpoint with its deliveries",
        is_grave=True,
    ),
)
