"""Outgoing webhook calls: as values, and carried out over HTTP."""
