"""API groups, OpenAPI, version, health."""
