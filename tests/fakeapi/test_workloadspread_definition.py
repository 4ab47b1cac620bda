"""The deployed definition of WorkloadSpreads on a server that enforces it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
import yaml

from fakeapi import FakeCluster, VirtualCluster
from fakeapi.apiserver.endpoints import Api, Request, Response
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from fakeapi.apiserver.testing.object_history import find_kind
from policies.workloadspread.quirks import UPSTREAM, UnknownModeError
from tests.builders import without_none
from tests.builders.workloadspread import NOW, Document, spread_json

ROOT = Path(__file__).parents[2]
DEFINITION = ROOT / "deploy" / "crds" / "workloadspreads.apps.kruise.io.yaml"
CASES: list[Document] = msgspec.json.decode(
    (ROOT / "tests" / "vectors" / "workloadspread.json").read_bytes()
)["cases"]
SPREADS = "/apis/apps.kruise.io/v1beta1/namespaces/default/workloadspreads"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture(autouse=True)
def _deployed(api: Api) -> None:
    api.load([yaml.safe_load(DEFINITION.read_text())])


def stored(ask: Ask, document: Document) -> Any:
    status, answer = ask("POST", SPREADS, document)
    assert status == 201, answer
    return answer


def test_the_definition_itself_is_accepted(ask: Ask) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/workloadspreads.apps.kruise.io"
    status, definition = ask("GET", path)
    assert status == 200
    conditions = {each["type"]: each["status"] for each in definition["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    versions = {
        each["name"]: (each["served"], each["storage"]) for each in definition["spec"]["versions"]
    }
    assert versions == {"v1beta1": (True, True), "v1alpha1": (True, False)}


def upstream_spreads() -> list[Any]:
    """Return each WorkloadSpread of v1beta1 in upstream's test tables once."""
    written = [
        each
        for case in CASES
        for each in (case.get("workloadspread"), *(case.get("existing") or ()))
        if each
        and not case.get("schemaInvalid")
        and each.get("apiVersion", "").endswith("/v1beta1")
        and each.get("metadata", {}).get("name")
    ]
    return list(
        {orjson.dumps(each, option=orjson.OPT_SORT_KEYS): each for each in written}.values()
    )


def test_workloadspreads_of_upstreams_tests_are_stored_unchanged(ask: Ask) -> None:
    found = upstream_spreads()
    assert len(found) > 50
    for number, document in enumerate(found):
        metadata = {"name": f"ws-{number}", "namespace": "default"}
        made = stored(ask, {**document, "metadata": metadata})
        assert made["spec"] == document["spec"]


def test_status_is_written_apart(ask: Ask) -> None:
    condition = {"type": "Schedulable", "status": "True", "reason": "Sufficient", "message": ""}
    entry = {
        "name": "a",
        "replicas": 1,
        "missingReplicas": 0,
        "creatingPods": {"x": NOW},
        "conditions": [{**condition, "lastTransitionTime": NOW}],
    }
    status = {
        "observedGeneration": 1,
        "subsetStatuses": [entry],
        "versionedSubsetStatuses": {"v1": [entry]},
    }
    made = stored(ask, {**spread_json({"name": "a"}), "status": status})
    assert "status" not in made
    code, answer = ask("PUT", f"{SPREADS}/web/status", {**made, "status": status})
    assert (code, answer["status"]) == (200, status)
    assert answer["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"targetRef": None}, "spec.targetRef: Required value"),
        ({"subsets": [{"maxReplicas": 1}]}, "spec.subsets[0].name: Required value"),
        ({"scheduleStrategy": {"type": "Sometimes"}}, 'Unsupported value: "Sometimes"'),
        ({"subsets": [{"name": "a", "maxReplicas": 1.5}]}, "spec.subsets[0].maxReplicas"),
    ],
)
def test_violations_of_the_schema_are_rejected(ask: Ask, spec: Document, message: str) -> None:
    document = spread_json({"name": "a"})
    document["spec"] = without_none(**(document["spec"] | spec))
    status, answer = ask("POST", SPREADS, document)
    assert (status, message in answer["message"]) == (422, True), answer


def test_a_patch_may_say_anything(ask: Ask) -> None:
    patch = {"spec": {"containers": [{"name": "main", "$patch": "delete"}]}, "x": [1, None]}
    made = stored(ask, spread_json({"name": "a", "patch": patch}))
    assert made["spec"]["subsets"][0]["patch"] == patch


def test_the_columns_of_kubectl_get(api: Api, ask: Ask) -> None:
    stored(ask, spread_json({"name": "a"}, scheduleStrategy={"type": "Adaptive"}))
    answer = api.handle(Request("GET", SPREADS, accept=TABLE))
    assert isinstance(answer, Response)
    table = orjson.loads(answer.body)
    names = [each["name"] for each in table["columnDefinitions"]]
    assert names == ["Name", "WorkloadName", "WorkloadKind", "Adaptive", "Age"]
    assert table["rows"][0]["cells"][:3] == ["web", "web", "CloneSet"]


def names(cluster: VirtualCluster) -> list[str]:
    """Return the names of the kinds that are defined."""
    kind = find_kind(cluster.api.kinds, "crd")
    return [entry.document()["metadata"]["name"] for entry in cluster.api.store.entries(kind)]


def test_the_shipped_definition_is_the_deployed_one() -> None:
    assert shipped_definitions(["gc", "workloadspread"]) == [yaml.safe_load(DEFINITION.read_text())]
    assert shipped_definitions(["gc", "replicaset"]) == []


def test_a_cluster_with_the_controller_has_the_kind() -> None:
    cluster = VirtualCluster(run="workloadspread")
    assert names(cluster) == ["workloadspreads.apps.kruise.io"]
    cluster.load([spread_json({"name": "a"})])
    cluster.reset()
    assert names(cluster) == ["workloadspreads.apps.kruise.io"]
    assert names(VirtualCluster(run="gc")) == []


async def test_an_existing_definition_is_not_replaced() -> None:
    own = yaml.safe_load(DEFINITION.read_text())
    own["metadata"]["labels"] = {"mine": "yes"}
    cluster = VirtualCluster(run="workloadspread")
    cluster.load([own])
    fork = cluster.fork()
    for each in (cluster, fork):
        kind = find_kind(each.api.kinds, "crd")
        (entry,) = each.api.store.entries(kind)
        assert entry.document()["metadata"]["labels"] == {"mine": "yes"}


def test_an_unknown_mode_of_quirks_is_rejected() -> None:
    with pytest.raises(UnknownModeError, match="quirks: no mode 'odd'"):
        FakeCluster(quirks="odd")
    forked = VirtualCluster(quirks="upstream").world.fork()
    assert forked.component_options.quirks == UPSTREAM
