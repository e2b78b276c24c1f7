"""Progress for end users."""
