"""Node-pressure eviction as in the kubelet: which pod is evicted, when, and with which message.

The functions are pure: a simulated kubelet and an advisor call the same ones.
:mod:`policies.eviction.manager` runs one round; :mod:`policies.eviction.config` resolves the
configuration that a round follows; :mod:`policies.eviction.forecast` forecasts pressure on a node,
and :mod:`policies.eviction.proactive_eviction` plans what can be done before the kubelet evicts.
"""
