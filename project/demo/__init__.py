"""`manage.py demo`: real processes, real work, and a check of what came out."""
