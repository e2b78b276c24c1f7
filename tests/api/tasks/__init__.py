"""Tasks over REST."""
