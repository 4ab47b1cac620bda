"""The extender: kube-scheduler on one side, the API server on the other; policies decide."""
