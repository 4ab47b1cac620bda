"""The write path: generic registry, strategies, deletion, request scope."""
