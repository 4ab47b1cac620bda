"""Traces of clusters as workloads of backtests: their formats, and a synthetic one."""
