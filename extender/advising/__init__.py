"""``advise eviction``: what nodes are heading for, read from a cluster or this machine, and why."""
