"""The scheduler cache: the watched cluster with assumed preemptions, as snapshots."""
