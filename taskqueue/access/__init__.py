"""Who may do what: permissions and roles; each verb names its own (`engine.control.verb`)."""
