"""Workflows as rows: inserting graphs, counting ends, and advancing what follows from them."""
