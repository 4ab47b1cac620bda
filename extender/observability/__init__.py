"""Decision log and history, metrics, Events, traces."""
