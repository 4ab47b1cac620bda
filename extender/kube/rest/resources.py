"""Resources of the Kubernetes API and their paths.

The core group (group "") is served under /api/VERSION, every other under /apis/GROUP/VERSION; a
namespaced object below namespaces/NAMESPACE. The path of an object and the path of a collection are
different types, so that a DELETE of one pod cannot delete them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class CollectionPath:
    """The path at which objects are listed and created."""

    path: str


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """The path at which one object is read and written."""

    path: str

    def subresource(self, name: str) -> ObjectPath:
        """Return the path of a subresource: `status`, `eviction`, `binding`, ..."""
        return ObjectPath(f"{self.path}/{name}")


@dataclass(frozen=True, slots=True)
class Resource:
    """A GroupVersionResource; `group` is "" for the core group."""

    group: str
    version: str
    plural: str
    namespaced: bool

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection(self, namespace: str = "") -> CollectionPath:
        """Return the path of all objects, of a namespace or of all.

        Raise ValueError if a namespace is given and the resource is cluster-scoped.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self} have no namespace, but {namespace!r} was given")
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        infix = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        return CollectionPath(f"{prefix}{infix}/{self.plural}")

    def object(self, name: str, namespace: str = "") -> ObjectPath:
        """Return the path of one object.

        Raise ValueError if the name is empty or the namespace does not fit.
        """
        if not name or (self.namespaced and not namespace):
            raise ValueError(f"{self}: expected a name and, if namespaced, a namespace")
        return ObjectPath(f"{self.collection(namespace).path}/{quote(name, safe='')}")


NODES = Resource("", "v1", "nodes", namespaced=False)
PODS = Resource("", "v1", "pods", namespaced=True)
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", namespaced=True)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
POD_GROUPS = Resource("scheduling.k8s.io", "v1", "podgroups", namespaced=True)
COMPOSITE_POD_GROUPS = Resource("scheduling.k8s.io", "v1", "compositepodgroups", namespaced=True)
EVENTS = Resource("", "v1", "events", namespaced=True)
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", namespaced=True)
SERVICES = Resource("", "v1", "services", namespaced=True)
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", namespaced=True)
REPLICA_SETS = Resource("apps", "v1", "replicasets", namespaced=True)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", namespaced=True)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", namespaced=True)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", namespaced=False)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", namespaced=False)
CSI_STORAGE_CAPACITIES = Resource("storage.k8s.io", "v1", "csistoragecapacities", namespaced=True)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", namespaced=False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", namespaced=True)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
DEVICE_TAINT_RULES = Resource("resource.k8s.io", "v1", "devicetaintrules", namespaced=False)
