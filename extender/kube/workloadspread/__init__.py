"""WorkloadSpreads and what they are about, between JSON and the values that decisions read.

``spreads`` reads WorkloadSpreads of either version and writes their status, ``conversion`` makes
one version of another. ``pods`` and ``workloads`` read the rest. ``injecting`` puts what a subset
says into a pod; since a pod may have any fields, it works on JSON.
"""
