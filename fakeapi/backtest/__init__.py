"""Backtests: workloads simulated on a virtual clock under different preemption policies."""
