"""The control plane beside an API server: the controllers of kube-controller-manager, and others.

Each controller is a module: its decisions are pure functions and values, and a class around them
reads and writes through a client (:mod:`extender.kube.rest.client`) only. So the controllers run
against any API server, with any clock.
"""
