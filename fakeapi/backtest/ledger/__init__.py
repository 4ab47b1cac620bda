"""Ledgers as workloads: their decisions, made again under policies."""
