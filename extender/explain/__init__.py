"""Decisions explained from files."""
