"""Controllers of workloads that kube-controller-manager and OpenKruise run on a real cluster.

The decisions are made in ``policies`` and in pure modules of these packages; the rest reads,
decides and writes. The controllers take a client, and so run against any API server.
"""
