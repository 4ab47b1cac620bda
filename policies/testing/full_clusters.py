"""Random clusters that are full, with pods of various sizes."""

from __future__ import annotations

from hypothesis import strategies as st

from policies.testing.strategies import NODES, Cluster
from policies.testing.values import node, pod


@st.composite
def full_clusters(draw: st.DrawFn) -> Cluster:
    """Draw full nodes with pods of various sizes, whose cheapest victims are often not the last."""
    sizes = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=6)
    names = NODES[: draw(st.integers(1, 3))]
    pods = [
        pod(
            f"{name}-{n}",
            on=name,
            cpu=str(cpu),
            memory=f"{memory}Gi",
            priority=draw(st.integers(0, 2)),
            started=draw(st.integers(0, 9)),
            ports=draw(st.sampled_from([(), (), (), (80,)])) if n == 0 else (),
        )
        for name in names
        for n, (cpu, memory) in enumerate(draw(sizes))
    ]
    nodes = [
        node(
            name,
            cpu=str(
                sum(each.requests.milli_cpu // 1000 for each in pods if each.node_name == name)
            ),
            memory=f"{sum(each.requests.memory for each in pods if each.node_name == name)}",
        )
        for name in names
    ]
    preemptor = pod(
        "preemptor",
        cpu=str(draw(st.integers(1, 10))),
        memory=f"{draw(st.integers(0, 6))}Gi",
        priority=9,
        ports=draw(st.sampled_from([(), (), (80,)])),
    )
    return Cluster(tuple(nodes), tuple(pods), (), preemptor)
