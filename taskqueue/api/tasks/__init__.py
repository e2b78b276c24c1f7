"""Tasks over REST: enqueue, find, look, wait, change, and every verb of the admin."""
