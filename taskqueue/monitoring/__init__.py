"""Read the state of the queue, for people and monitors. Nothing here changes a row."""
