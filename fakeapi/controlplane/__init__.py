"""The control plane that an API server alone lacks: what kube-controller-manager runs beside one.

Each part is a file: its thinking in plain functions and values, and a shell around them that reads
and writes through a client (:mod:`extender.kube.client`) and nothing else. So the parts run against
any API server, on whatever clock they are given.
"""
