"""Structured allocation of devices (Dynamic Resource Allocation), on values.

Selectors of devices are a subset of CEL (``expressions``). ``pools`` finds the published devices
that a node can use, and ``allocator`` searches them for devices that meet all requests of some
claims. ``inventory`` prepares the devices of a cluster for many searches.
"""
