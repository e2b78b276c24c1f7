"""Makes the parts of the documentation that the code tells."""
