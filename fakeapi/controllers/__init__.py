"""Controllers of workloads: what kube-controller-manager and OpenKruise run on a real cluster.

Their thinking is in ``policies`` and in pure modules beside them; what remains is to read, decide
and write. They take a client, and so run against any API server.
"""
