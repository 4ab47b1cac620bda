"""Controllers of workloads, with the behaviour of kube-controller-manager's."""
