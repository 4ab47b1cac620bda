"""HTTP server, in-process transport, client access, virtual clock, fault delivery."""
