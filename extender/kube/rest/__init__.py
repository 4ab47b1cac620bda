"""A REST client of the Kubernetes API: transport, configuration, discovery, errors, clock."""
