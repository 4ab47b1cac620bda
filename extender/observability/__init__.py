"""What is recorded of decisions: log, history, metrics, Events and traces."""
