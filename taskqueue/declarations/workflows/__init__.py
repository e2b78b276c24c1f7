"""Workflows as data: signatures, builders, graphs, conditions and drawings. Loads no model."""
