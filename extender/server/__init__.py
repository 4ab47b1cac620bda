"""The extender over HTTP: its service, call queue, handlers and process."""
