"""Filtering and preemption: the in-tree filters, victim selection, policies, and two engines."""
