"""Cluster state that the controller and the webhooks of WorkloadSpreads share.

types              objects as both cache them, and their decoders
assumed_statuses   status writes of this process that the caches may not show yet
spread_cache       WorkloadSpreads, followed once their CustomResourceDefinition exists
controller_finder  targets and owners from caches or the server, and the kinds that are allowed
webhook_endpoint   where webhooks are served; provided by the process that runs them
"""
