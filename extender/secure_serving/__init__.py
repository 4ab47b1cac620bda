"""Secure serving: sockets, certificates, client authorization, and connection limits."""
