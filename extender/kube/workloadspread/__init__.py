"""WorkloadSpreads and related objects, between JSON and the values that decisions read.

``spreads`` decodes WorkloadSpreads of either version and encodes their status;
``version_conversion`` converts between the versions. ``spread_pods`` and ``workloads`` decode the
other objects. ``pod_injection`` patches a subset into a pod; since a pod may have any fields, it
works on JSON.
"""
