"""The nodes of a trace, from CSV files or Kubernetes manifests.

Unlike a job, a node is never left out: with another cluster than was meant, all results would be
wrong. So the first invalid row is an error.

    sn,cpu_milli,memory_mib,gpu,model       as in cluster-trace-gpu-v2023
    name,cpu,memory,gpu,count               quantities; count (1 if absent) nodes are named name-0 …

A ``.yaml``, ``.yml`` or ``.json`` file has the Nodes that ``kubectl get nodes`` prints. Of them,
names, labels and allocatable resources count; taints do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.manifests import ManifestError, decode_manifests, read_manifests
from extender.kube.decoders.typed_decoder import Unreadable
from fakeapi.backtest.traces.rows import CellError, Row, read_header, read_rows, shown
from fakeapi.backtest.traces.trace import TraceError, TraceNode
from policies.kubernetes.name_validation import invalid_label_value, invalid_subdomain
from policies.kubernetes.snapshot import Node, Resources

GPU: Final = "nvidia.com/gpu"
"""The resource that whole GPUs are, where a trace does not name one."""
GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
"""Thousandths of a GPU, as Alibaba names them (pod_csv_to_yaml.py beside the trace)."""
GPU_MODEL: Final = "alibabacloud.com/gpu-card-model"
"""The label of the model of a node's GPUs, likewise."""
MIB: Final = 2**20

_MOST_NODES: Final = 100_000
_PODS: Final = 110
"""The kubelet's default of --max-pods; no list in CSV has the number."""
_MANIFESTS: Final = (".yaml", ".yml", ".json")
_OPENB: Final = frozenset(("sn", "cpu_milli", "memory_mib", "gpu", "model"))
_GENERIC: Final = frozenset(("name", "cpu", "memory"))
_JOB_COLUMN: Final = "submit"


def read_nodes(path: Path) -> tuple[TraceNode, ...]:
    """Read a list of nodes. Raise TraceError."""
    nodes = _manifest_nodes(path) if path.suffix in _MANIFESTS else _csv_nodes(path)
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            raise TraceError(f"{path}: two nodes are named {node.name}")
        names.add(node.name)
        if len(names) > _MOST_NODES:
            raise TraceError(f"{path}: expected at most {_MOST_NODES:,} nodes")
    if not names:
        raise TraceError(f"{path}: expected nodes, found none")
    return tuple(nodes)


def is_node_list(columns: tuple[str, ...]) -> bool:
    """Return whether these are the columns of a list of nodes."""
    return {*columns} >= _OPENB or ({*columns} >= _GENERIC and _JOB_COLUMN not in columns)


def make_nodes(
    name: str, count: int, allocatable: Mapping[str, int], labels: Mapping[str, str] | None = None
) -> tuple[TraceNode, ...]:
    """Return nodes with the same resources, named ``name-0`` and so on, for 110 pods each."""
    return tuple(_node(f"{name}-{i}", allocatable, labels or {}) for i in range(count))


def resource_amounts(resources: Resources) -> dict[str, int]:
    """Return resources by name, without those of which there are none."""
    amounts = {
        "cpu": resources.milli_cpu,
        "memory": resources.memory,
        "ephemeral-storage": resources.ephemeral_storage,
        **resources.scalars,
    }
    return {name: amount for name, amount in amounts.items() if amount}


def openb_node(row: Row) -> TraceNode:
    """Return the node of a row of openb's list. Raise CellError."""
    model = row.text("model")
    if invalid_label_value(model):
        raise CellError("model: not a label value")
    amounts = {
        "cpu": row.number("cpu_milli"),
        "memory": row.number("memory_mib", MIB),
        GPU_MILLI: row.number("gpu", 1000),
    }
    return _node(row.dns_label("sn"), amounts, {GPU_MODEL: model} if model else {})


def _node(name: str, allocatable: Mapping[str, int], labels: Mapping[str, str]) -> TraceNode:
    resources = {resource: amount for resource, amount in allocatable.items() if amount}
    return TraceNode(name, resources | {"pods": _PODS}, labels)


def _openb_nodes(row: Row) -> tuple[TraceNode, ...]:
    return (openb_node(row),)


def _generic_nodes(row: Row) -> tuple[TraceNode, ...]:
    amounts = {
        "cpu": row.quantity("cpu", 1000),
        "memory": row.quantity("memory", 1),
        GPU: row.quantity("gpu", 1),
    }
    count = row.number("count", largest=_MOST_NODES) if row.text("count") else 1
    return make_nodes(row.dns_label("name"), count, amounts)


def _csv_nodes(path: Path) -> list[TraceNode]:
    columns = read_header(path)
    if not is_node_list(columns):
        raise TraceError(
            f"{path}: expected the columns sn, cpu_milli, memory_mib, gpu, model or name, cpu, "
            f"memory of nodes; found {shown(columns)}"
        )
    nodes_of = _openb_nodes if {*columns} >= _OPENB else _generic_nodes
    nodes: list[TraceNode] = []
    for line, row in read_rows(path):
        try:
            nodes += nodes_of(row) if isinstance(row, Row) else _invalid(row)
        except CellError as error:
            raise TraceError(f"{path}:{line}: {error}") from None
        if len(nodes) > _MOST_NODES:
            break
    return nodes


def _invalid(reason: str) -> tuple[TraceNode, ...]:
    raise CellError(reason)


def _manifest_nodes(path: Path) -> list[TraceNode]:
    try:
        manifests = read_manifests(str(path))
    except ManifestError as error:
        raise TraceError(*error.errors) from None
    return [*_converted(path, decode_manifests(manifests, "Node", decode_node))]


def _converted(path: Path, nodes: list[Node | Unreadable]) -> Iterator[TraceNode]:
    for node in nodes:
        if isinstance(node, Unreadable):
            raise TraceError(f"{path}: {node.problem}")
        if invalid_subdomain(node.name):
            raise TraceError(f"{path}: a node has an invalid name")
        allocatable = resource_amounts(node.allocatable) | {"pods": node.allowed_pods or _PODS}
        yield TraceNode(node.name, allocatable, node.labels)
