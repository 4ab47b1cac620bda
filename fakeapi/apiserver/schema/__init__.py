"""A document as its kind types it."""
