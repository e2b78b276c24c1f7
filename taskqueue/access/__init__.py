"""Permissions and roles; each verb names the permissions it needs (`engine.control.verb`)."""
