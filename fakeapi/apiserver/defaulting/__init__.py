"""Defaults, derived fields, service allocators."""
