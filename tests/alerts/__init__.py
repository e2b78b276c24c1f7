"""Alert rules, their incidents and messages."""
