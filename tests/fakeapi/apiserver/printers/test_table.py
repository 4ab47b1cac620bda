"""Tables: rows equal to those that kube-apiserver 1.37 made of the same objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.printers.columns import columns_of
from fakeapi.apiserver.printers.table import (
    PRINTERS,
    TableOptions,
    build_table,
    parse_table_options,
)
from fakeapi.apiserver.wire.errors import StatusError

RECORDED: dict[str, Any] = orjson.loads(
    (Path(__file__).parents[2] / "recorded" / "tables.json").read_bytes()
)

KNOWN_DIFFERENCES = {
    # upstream converts to v2 and shows metrics that v1 keeps in an annotation
    "autoscaling/v1 HorizontalPodAutoscalerList": {"h2", "h3"},
    # upstream prints the Go struct of the selector
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBindingList": {"t3-vapb2"},
}


def tabulate(document: dict[str, Any], now: int, include: str = "") -> Any:
    return orjson.loads(
        orjson.dumps(build_table(orjson.dumps(document), TableOptions(include), now))
    )


def list_of(recorded: str) -> dict[str, Any]:
    api_version, kind = recorded.split()
    items = [dict(row["object"]) for row in RECORDED[recorded]["rows"]]
    for item in items:
        item.pop("kind", None)
        item.pop("apiVersion", None)
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}


@pytest.mark.parametrize("recorded", RECORDED)
def test_rows_equal_upstreams(recorded: str) -> None:
    shown = tabulate(list_of(recorded), RECORDED[recorded]["now"])
    differing = {
        row["object"]["metadata"]["name"]
        for row, ours in zip(RECORDED[recorded]["rows"], shown["rows"], strict=True)
        if (row["cells"], row.get("conditions")) != (ours["cells"], ours.get("conditions"))
    }
    assert differing == KNOWN_DIFFERENCES.get(recorded, set())


POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "a", "resourceVersion": "7", "creationTimestamp": "1970-01-01T00:00:00Z"},
    "status": {"phase": "Running"},
}


def test_a_single_object_makes_a_table_of_one_row() -> None:
    shown = tabulate(POD, 60)
    assert list(shown) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert (shown["kind"], shown["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert shown["metadata"] == {"resourceVersion": "7"}
    assert shown["rows"][0]["cells"][:5] == ["a", "0/0", "Running", "0", "60s"]


@pytest.mark.parametrize(
    ("include", "there"),
    [
        ("", {"kind": "PartialObjectMetadata", "metadata": POD["metadata"]}),
        ("Metadata", {"kind": "PartialObjectMetadata", "metadata": POD["metadata"]}),
        ("Object", {key: POD[key] for key in ("kind", "metadata")}),
        ("None", None),
    ],
)
def test_a_row_carries_as_much_of_its_object_as_asked(include: str, there: Any) -> None:
    carried = tabulate(POD, 0, include)["rows"][0]["object"]
    assert (carried and {key: carried[key] for key in there}) == there


def test_an_unknown_extent_is_refused_in_upstreams_words() -> None:
    with pytest.raises(
        StatusError, match="must be 'Metadata', 'Object', 'None', or empty"
    ) as refused:
        parse_table_options({"includeObject": "All"}, "v1")
    assert refused.value.code == 400


def test_a_kind_without_columns_of_its_own_shows_name_and_creation() -> None:
    custom = {"kind": "Shirt", "apiVersion": "shop/v1", "metadata": POD["metadata"]}
    shown = tabulate(custom, 0)
    assert [column["name"] for column in shown["columnDefinitions"]] == ["Name", "Created At"]
    assert shown["rows"][0]["cells"] == ["a", "1970-01-01T00:00:00Z"]


def test_a_list_keeps_its_place_and_its_order() -> None:
    metadata = {"resourceVersion": "9", "continue": "x", "remainingItemCount": 3}
    items = [{"metadata": {"name": name}} for name in "cab"]
    pods = {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}
    shown = tabulate(pods, 0)
    assert shown["metadata"] == metadata
    assert [row["cells"][0] for row in shown["rows"]] == ["c", "a", "b"]


def test_only_the_first_columns_are_always_shown() -> None:
    wide = [column.name for column in columns_of("Pod") if column.priority]
    assert wide == ["IP", "Node", "Nominated Node", "Readiness Gates"]


WORDS = ("metadata", "spec", "status", "containers", "template", "conditions", "rules", "subsets")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.sampled_from(sorted(PRINTERS)), st.dictionaries(st.sampled_from(WORDS), JSON))
def test_any_document_makes_a_row(kind: str, document: dict[str, Any]) -> None:
    cells = PRINTERS[kind](document, 0)
    assert len(cells) >= len(columns_of(kind))
