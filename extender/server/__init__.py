"""The extender over HTTP: service, call queue, handlers, OpenAPI, process."""
