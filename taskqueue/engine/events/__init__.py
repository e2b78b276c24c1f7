"""Events: who wants which, their numbers, what they cause, reading and deleting them."""
