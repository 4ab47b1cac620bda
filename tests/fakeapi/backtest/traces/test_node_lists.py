"""Lists of nodes: CSV files of two kinds, and Kubernetes manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakeapi.backtest.traces.node_lists import GPU, read_nodes
from fakeapi.backtest.traces.trace import TraceError, TraceNode
from tests.fakeapi.backtest.traces.trace_files import GIB, write

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n, labels: {zone: a}}
status: {allocatable: {cpu: 3920m, memory: 1Gi, nvidia.com/gpu: "2", pods: "30"}}
"""


def test_a_row_is_as_many_nodes_as_it_counts(tmp_path: Path) -> None:
    text = "name,cpu,memory,gpu,count\nbig,64,256Gi,8,2\nSmall,500m,1Gi,,\n"
    assert read_nodes(Path(write(tmp_path, text))) == (
        TraceNode("big-0", {"cpu": 64_000, "memory": 256 * GIB, GPU: 8, "pods": 110}),
        TraceNode("big-1", {"cpu": 64_000, "memory": 256 * GIB, GPU: 8, "pods": 110}),
        TraceNode("small-0", {"cpu": 500, "memory": GIB, "pods": 110}),
    )


def test_a_manifest_is_a_node_with_its_labels(tmp_path: Path) -> None:
    allocatable = {"cpu": 3920, "memory": GIB, GPU: 2, "pods": 30}
    nodes = read_nodes(Path(write(tmp_path, NODE, "nodes.yaml")))
    assert nodes == (TraceNode("n", allocatable, {"zone": "a"}),)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "n.csv",
            "a,b\n1,2\n",
            "n.csv: expected the columns sn, cpu_milli, memory_mib, gpu, model",
        ),
        ("n.csv", "name,cpu,memory\n", "n.csv: expected nodes, found none"),
        ("n.csv", "name,cpu,memory\na,1,1\na,1,1\n", "n.csv: two nodes are named a-0"),
        ("n.csv", "name,cpu,memory\na,x,1\n", "n.csv:2: cpu: not a quantity"),
        ("n.csv", "name,cpu,memory\na,1\n", "n.csv:2: wrong number of columns"),
        ("n.csv", "name,cpu,memory\na,1,1", "n.csv:2: torn: no line break at its end"),
        ("n.csv", "name,cpu,memory,count\na,1,1,100001\n", "n.csv:2: count: too large"),
        (
            "n.csv",
            "name,cpu,memory,count\na,1,1,99999\nb,1,1,9\n",
            "expected at most 100,000 nodes",
        ),
        ("n.yaml", "kind: Pod\n", "n.yaml"),
        ("n.yaml", "{", "n.yaml"),
    ],
)
def test_an_invalid_list_is_an_error(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_nodes(Path(write(tmp_path, text, name)))
    assert message in str(caught.value)
