"""Events: subscriptions, numbering, the effects of events, reading and pruning."""
