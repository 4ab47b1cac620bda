"""The definition of WorkloadSpreads, as it is deployed, on a server that keeps to it."""

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
from tests.builders.workloadspread import Document, spread_json

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


def refusal(ask: Ask, document: Document) -> str:
    status, answer = ask("POST", SPREADS, document)
    assert status == 422, answer
    return str(answer["message"])


def test_the_definition_itself_is_accepted(ask: Ask) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/workloadspreads.apps.kruise.io"
    status, definition = ask("GET", path)
    assert status == 200
    said = {each["type"]: each["status"] for each in definition["status"]["conditions"]}
    assert said == {"NamesAccepted": "True", "Established": "True"}
    versions = {
        each["name"]: (each["served"], each["storage"]) for each in definition["spec"]["versions"]
    }
    assert versions == {"v1beta1": (True, True), "v1alpha1": (True, False)}


def of_tables() -> list[Any]:
    """Return each WorkloadSpread of v1beta1 that upstream's tables have, once."""
    written = [
        each
        for case in CASES
        for each in (case.get("workloadspread"), *(case.get("existing") or ()))
        if each
        and not case.get("schemaInvalid")
        and each.get("apiVersion", "").endswith("/v1beta1")
        and each.get("metadata", {}).get("name")
    ]
    different = {encoded(each): each for each in written}
    return list(different.values())


def encoded(document: Document) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def test_whatever_upstream_writes_is_stored_without_loss(ask: Ask) -> None:
    found = of_tables()
    assert len(found) > 50
    for number, document in enumerate(found):
        metadata = {"name": f"ws-{number}", "namespace": "default"}
        made = stored(ask, {**document, "metadata": metadata})
        assert made["spec"] == document["spec"]


def test_status_is_written_apart(ask: Ask) -> None:
    entry = {
        "name": "a",
        "replicas": 1,
        "missingReplicas": 0,
        "creatingPods": {"x": "2026-01-01T12:00:00Z"},
        "conditions": [
            {
                "type": "Schedulable",
                "status": "True",
                "reason": "Sufficient",
                "message": "",
                "lastTransitionTime": "2026-01-01T12:00:00Z",
            }
        ],
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
    ("spec", "told"),
    [
        ({"targetRef": None}, "spec.targetRef: Required value"),
        ({"subsets": [{"maxReplicas": 1}]}, "spec.subsets[0].name: Required value"),
        ({"scheduleStrategy": {"type": "Sometimes"}}, 'Unsupported value: "Sometimes"'),
        ({"subsets": [{"name": "a", "maxReplicas": 1.5}]}, "spec.subsets[0].maxReplicas"),
    ],
)
def test_what_the_schema_forbids_is_refused(ask: Ask, spec: Document, told: str) -> None:
    document = spread_json({"name": "a"})
    document["spec"] = {
        name: value for name, value in (document["spec"] | spec).items() if value is not None
    }
    assert told in refusal(ask, document)


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


def test_the_definition_that_comes_with_the_controller_is_the_one_that_is_deployed() -> None:
    assert shipped_definitions(["gc", "workloadspread"]) == [yaml.safe_load(DEFINITION.read_text())]
    assert shipped_definitions(["gc", "replicaset"]) == []


def test_the_kind_is_there_from_the_beginning_where_its_controller_runs() -> None:
    cluster = VirtualCluster(run="workloadspread")
    assert names(cluster) == ["workloadspreads.apps.kruise.io"]
    cluster.load([spread_json({"name": "a"})])
    cluster.reset()
    assert names(cluster) == ["workloadspreads.apps.kruise.io"]
    assert names(VirtualCluster(run="gc")) == []


async def test_a_definition_that_is_there_already_stays_as_it_is() -> None:
    own = yaml.safe_load(DEFINITION.read_text())
    own["metadata"]["labels"] = {"mine": "yes"}
    cluster = VirtualCluster(run="workloadspread")
    cluster.load([own])
    fork = cluster.fork()
    for each in (cluster, fork):
        kind = find_kind(each.api.kinds, "crd")
        (entry,) = each.api.store.entries(kind)
        assert entry.document()["metadata"]["labels"] == {"mine": "yes"}


def test_a_mode_of_oddities_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnknownModeError, match="quirks: no mode 'odd'"):
        FakeCluster(quirks="odd")
    forked = VirtualCluster(quirks="upstream").world.fork()
    assert forked.component_options.quirks == UPSTREAM
