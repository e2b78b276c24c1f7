"""Reading how the queue does, for people and monitors. Nothing here changes a row."""
