"""Roles x URLs x methods of the REST API: one table tells who may what, tried cell by cell."""
