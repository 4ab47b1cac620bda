"""Kube-controller-manager's controllers."""
