"""`workflows …`: list, show, draw and enqueue workflows; a subcommand for each verb on them."""

from taskqueue.management.cli.subcommand import Subcommand, actions_of
from taskqueue.management.cli.workflows.acting import VERBS
from taskqueue.management.cli.workflows.enqueueing import enqueue
from taskqueue.management.cli.workflows.showing import graph, listed, show

workflows = Subcommand(
    name="workflows",
    help="view, draw, enqueue and change workflows",
    arguments=[actions_of(listed, show, graph, enqueue, *VERBS)],
    run=listed.run,
)
