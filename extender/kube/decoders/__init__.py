"""Kubernetes JSON to the values that decisions read; pure."""
