"""The fake API server, in the layers of k8s.io/apiserver."""
