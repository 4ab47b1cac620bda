"""``advise eviction``: forecasts of pressure on the nodes of a cluster or on this machine."""
