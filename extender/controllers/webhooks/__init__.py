"""The webhooks of pods and WorkloadSpreads, with the behaviour of OpenKruise's.

registration            names, paths and rules; webhook configurations, conversion of the CRD
handlers                handlers by path, and the webhooks as a component
admission_review        AdmissionReview requests and responses, JSON patches
pod_webhook             creation, deletion and eviction of pods
workloadspread_webhook  validation and conversion of WorkloadSpreads
status_writer           the status write before a pod is admitted, repeated after a conflict
status_batch            pods that share one status write
cluster_state           the caches that reviews read, and the cluster for scheduling simulations

Sources: openkruise/kruise pkg/webhook/{pod,workloadspread,util}, pkg/util/workloadspread.
"""
