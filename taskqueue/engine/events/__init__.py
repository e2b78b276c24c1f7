"""Events: subscriptions, numbering, effects, reading and pruning."""
