"""The WorkloadSpread controller, with the behaviour of OpenKruise's, over any API server.

types              objects as controller and webhooks cache them, and their decoders
assumed_statuses   status writes of this process that the caches may not show yet
spread_cache       WorkloadSpreads, followed once their CustomResourceDefinition exists
controller_finder  targets and owners from caches or the server, and the kinds that are allowed
served_kinds       the kinds that the server has, and their resources
caches             workloads, pods and nodes of WorkloadSpreads
event_handlers     which WorkloadSpreads an event enqueues, and how soon
writer             adopts pods, writes deletion costs and the status, and deletes pods
sync               one sync, in upstream's order

The webhooks share the first four. The decisions are made by :mod:`policies.workloadspread`; this
package carries them out.

Source: openkruise/kruise pkg/controller/workloadspread.
"""
