"""The comparison reports differences, but accepts the random choices of upstream."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.builders import Document, node_json, pdb_json, pod_json
from tests.differential.case import Answer, Case, Offer, read, write
from tests.differential.comparison import differences
from tests.differential.random_clusters import generate

FILTERED = "0/2 nodes are available: 2 Insufficient cpu."
PLACED = "preemption: found a potential placement for pod on node {}, preempting 1 victims"
PENDING = pod_json("new", cpu="2", priority=10)


def cluster(first: int = 0, second: int = 1, *others: Document) -> list[Document]:
    """Two full nodes, each with a pod of a priority."""
    return [
        node_json("n1", cpu="2"),
        node_json("n2", cpu="2"),
        pod_json("one", on="n1", cpu="2", priority=first, started=1),
        pod_json("two", on="n2", cpu="2", priority=second, started=1),
        *others,
    ]


def message_for(node: str) -> str:
    return f"{FILTERED} {PLACED.format(node)}"


OFFERED = {"n1": Offer(("one",), 0), "n2": Offer(("two",), 0)}
TRUE = Answer("", OFFERED, "n1", ("one",), message_for("n1"))


def compared(answer: Answer, items: list[Document] | None = None, pod: Document = PENDING) -> str:
    return "; ".join(differences(Case("case", "1.37", items or cluster(), pod, answer)))


def test_a_right_answer_has_no_difference() -> None:
    assert compared(TRUE) == ""


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"candidates": {"n1": OFFERED["n1"]}}, "on n2 its victims and violations are None"),
        ({"candidates": {**OFFERED, "n2": Offer(("two",), 1)}}, "(('two',), 1), ours"),
        ({"candidates": {**OFFERED, "n2": Offer(("two", "x"), 0)}}, "('two', 'x')"),
        ({"candidates": None}, "on n1 its victims and violations are None"),
        ({"nominated_node": "n2", "victims": ("two",)}, "it chose n2, we n1, by lowest priority"),
        ({"nominated_node": "", "victims": ()}, "it chose None, we n1"),
        ({"victims": ("one", "two")}, "it told ['one', 'two'] to go, we ['one']"),
        ({"victims": ()}, "it told [] to go"),
        ({"message": FILTERED}, "it says"),
        ({"bound_to": "n1"}, "it was bound to n1; we say that it does not fit: 0/2"),
    ],
)
def test_each_difference_is_reported(changed: dict[str, object], expected: str) -> None:
    assert expected in compared(msgspec.structs.replace(TRUE, **changed))


def test_a_pod_that_fits_must_have_been_bound() -> None:
    fits = [*cluster(), node_json("n3", cpu="2")]
    assert "we say that it fits n3" in compared(TRUE, fits)
    assert compared(Answer(bound_to="n3"), fits) == ""


def test_each_of_equally_good_nodes_may_be_chosen() -> None:
    tied = cluster(first=1, second=1)
    assert compared(TRUE, tied) == ""
    assert compared(Answer("", OFFERED, "n2", ("two",), message_for("n2")), tied) == ""


def test_terminating_pods_are_not_deleted_again() -> None:
    leaving = pod_json(
        "one", on="n1", cpu="2", started=1, metadata={"deletionTimestamp": "2100-01-01T00:00:00Z"}
    )
    items = [each for each in cluster() if each["metadata"]["name"] != "one"] + [leaving]
    assert compared(msgspec.structs.replace(TRUE, victims=()), items) == ""


@pytest.mark.parametrize(("kept", "expected"), [("n1", ""), ("", "it chose None, we n1")])
def test_a_pod_that_may_not_preempt_keeps_its_nomination(kept: str, expected: str) -> None:
    never = {"preemptionPolicy": "Never"}
    nominated = {"nominatedNodeName": "n1"}
    asking = pod_json("new", cpu="2", priority=10, spec=never, status=nominated)
    message = f"{FILTERED} preemption: not eligible due to preemptionPolicy=Never."
    assert compared(Answer(nominated_node=kept, message=message), pod=asking) == expected


def test_a_claim_that_a_case_lacks_does_not_exist() -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}
    claiming = pod_json("new", priority=10, spec={"volumes": [volume]})
    message = '0/2 nodes are available: persistentvolumeclaim "missing" not found. not found'
    assert compared(Answer(message=message), pod=claiming) == ""


def test_any_order_of_budgets_explains_an_answer() -> None:
    """Since 1.37 a budget that is broken spares those after it.

    Both pods on the node match the first budget, one of them the second as well.
    """
    both = {"app": "a"}
    budgets = [
        pdb_json("first", match=both, allowed=0),
        pdb_json("second", match={"tier": "b"}, allowed=1),
    ]
    items = [
        node_json("n1", cpu="2"),
        pod_json("one", on="n1", cpu="1", started=1, labels={"app": "a", "tier": "b"}),
        pod_json("two", on="n1", cpu="1", started=2, labels={"tier": "b"}),
    ]
    message = f"{FILTERED.replace('2', '1')} {PLACED.format('n1').replace('1 v', '2 v')}"
    for violations in (1, 2):
        answer = Answer(
            "", {"n1": Offer(("one", "two"), violations)}, "n1", ("one", "two"), message
        )
        assert compared(answer, [*items, *budgets]) == ""
        assert compared(answer, [*items, *reversed(budgets)]) == ""
    none = Answer("", {"n1": Offer(("one", "two"), 0)}, "n1", ("one", "two"), message)
    assert "(('one', 'two'), 0), ours" in compared(none, [*items, *budgets])


def test_a_case_is_read_as_it_was_written(tmp_path: Path) -> None:
    case = Case("case", "1.37", cluster(), PENDING, TRUE)
    write(case, tmp_path / "case.json")
    assert read(tmp_path / "case.json") == case


def test_a_seed_and_a_number_give_the_same_cluster_again() -> None:
    assert generate(1, 2) == generate(1, 2)
    assert generate(1, 2) != generate(1, 3)
    assert generate(1, 2) != generate(2, 2)
