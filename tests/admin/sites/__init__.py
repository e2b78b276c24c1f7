"""Projects with an admin site of their own beside Django's."""
