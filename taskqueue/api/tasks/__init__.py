"""Tasks over REST: enqueue, find, view, wait for and change them, with every verb of the admin."""
