"""Roles x URLs x methods: who may see and do what, told by one table and tried cell by cell."""
