"""Validation of built-in kinds, strict fields, immutable fields."""
