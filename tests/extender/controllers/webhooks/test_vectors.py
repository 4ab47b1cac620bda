"""Upstream's tables about webhooks, through the API server: what is stored, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from extender.controllers.webhooks.workloadspread_webhook import answer_conversion
from tests.builders import encoded
from tests.builders.workloadspread import decoded
from tests.extender.controllers.webhooks.clusters import (
    CLONE_SETS,
    DEFINITION,
    OLD_SPREADS,
    PODS,
    SPREADS,
    Document,
    World,
    in_process,
    over_https,
    put_into,
)
from tests.policies.workloadspread.test_rule_vectors import assert_contains, at
from tests.policies.workloadspread.test_vectors import meaningful, versions
from tests.workloadspread_vectors import CASES, of

Case = dict[str, Any]
DENIED = 'admission webhook "create-pod.workloadspread.apps.kruise.io" denied the request: '
Worlds = Callable[..., Any]


def cases(*tables: str) -> pytest.MarkDecorator:
    found = [case for case in CASES if case["table"] in tables]
    return pytest.mark.parametrize("case", found, ids=of)


def around(case: Case, *names: str) -> list[Document]:
    """Return the objects that exist before: definitions, and the case's documents with a name."""
    given = [case.get(name) for name in names]
    several = [each for one in given for each in (one if isinstance(one, list) else [one])]
    return [DEFINITION, CLONE_SETS, *(each for each in several if each)]


@pytest.mark.parametrize("reached", [in_process, over_https], ids=["in process", "over https"])
@cases("pod_webhook")
async def test_pods_come_and_go(case: Case, reached: Worlds) -> None:
    [pod], expect = case["pods"], case["expect"]
    name = case["workloadspread"]["metadata"]["name"]
    there = around(case, "workloadspread", "workload", "extra")
    removes = case["operation"] != "Create"
    async with reached(*there, *([pod] if removes else [])) as world:
        if removes:
            await remove(world, case["operation"], pod["metadata"]["name"])
        else:
            await created(world, pod, expect)
        status = await world.status(name)
        if expect["versionedSubsetStatuses"] is not None:
            assert versions(status) == versions(expect)
        if expect.get("missingReplicas"):
            [subsets] = status["versionedSubsetStatuses"].values()
            missing = {each["name"]: each["missingReplicas"] for each in subsets}
            assert missing == expect["missingReplicas"]


async def remove(world: World, operation: str, name: str) -> None:
    if operation == "Delete":
        status, answer = await world.ask("DELETE", f"{PODS}/{name}")
        assert status == 200, answer
        return
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    await world.made(f"{PODS}/{name}/eviction", eviction)


async def created(world: World, pod: Document, expect: Document) -> None:
    if not expect["allowed"]:
        code, told = await world.refusal(PODS, pod)
        assert (code, told.startswith(DENIED)) == (500, True)
        return
    stored = await world.made(PODS, pod)
    given = put_into(stored) or {}
    assert given.get("subset") == expect["subset"]
    if expect["pod"] is not None:
        assert_contains(without_default_tolerations(stored), meaningful(decoded(expect["pod"])))
    if expect.get("generatedUID"):
        [subsets] = (await world.status(given["name"]))["versionedSubsetStatuses"].values()
        [chosen] = [each for each in subsets if each["name"] == given["subset"]]
        assert list(chosen["creatingPods"]) == [given["uid"]]


def without_default_tolerations(pod: Document) -> Document:
    """Take away what the server tolerates for every pod."""
    written = [each for each in pod["spec"]["tolerations"] if "tolerationSeconds" not in each]
    return {**pod, "spec": {**pod["spec"], "tolerations": written}}


@cases("statefulset_ordinal")
async def test_pods_of_stateful_sets_go_by_their_ordinal(case: Case) -> None:
    name = case["workloadspread"]["metadata"]["name"]
    async with in_process(*around(case, "workloadspread", "workload")) as world:
        before = await world.status(name)
        found = {}
        for pod in case["pods"]:
            stored = await world.made(PODS, pod)
            found[pod["metadata"]["name"]] = (put_into(stored) or {}).get("subset")
        assert found == case["expect"]["subsets"]
        assert (await world.status(name) == before) == case["expect"]["statusUnchanged"]


@cases("validate_create", "validate_handler", "validate_patch", "validate_update")
async def test_workload_spreads_are_checked(case: Case) -> None:
    expect = case["expect"]
    status, answer = await written(case, "old", "existing", "workload")
    if expect.get("valid", expect.get("allowed")):
        assert status in (200, 201), answer
        return
    assert status == (422 if case.get("schemaInvalid") else 400), answer
    for text in (*expect.get("messages", ()), *expect.get("fields", ())):
        assert text in answer["message"]
    assert (expect.get("fieldPrefix") or "") in answer["message"]


@cases("validate_conflict")
async def test_two_may_not_have_the_same_target(case: Case) -> None:
    _, answer = await written(case, "existing")
    [told] = case["expect"].get("messages") or ["is in conflict with other WorkloadSpread"]
    assert (told in answer.get("message", "")) == (not case["expect"]["valid"])


async def written(case: Case, *names: str) -> tuple[int, Document]:
    """Make or change the WorkloadSpread of a case, and give the answer."""
    document, there = case["workloadspread"], around(case, *names)
    name = document["metadata"]["name"]
    path = OLD_SPREADS if document["apiVersion"].endswith("v1alpha1") else SPREADS
    async with in_process(*there) as world:
        if name not in [each["metadata"]["name"] for each in there if "targetRef" in spec(each)]:
            return await world.ask("POST", path, document)
        known = (await world.get(f"{path}/{name}"))["metadata"]
        return await world.ask("PUT", f"{path}/{name}", {**document, "metadata": known})


def spec(document: Document) -> Document:
    found: Document = document.get("spec") or {}
    return found


@cases("conversion")
def test_versions_are_converted(case: Case) -> None:
    given, expect = case["workloadspread"], case["expect"]
    if expect.get("roundTrip"):
        there = converted(given, "apps.kruise.io/v1beta1")
        back = converted(there, given["apiVersion"])
        assert {p: at(back, p) for p in expect["equalPaths"]} == {
            p: at(given, p) for p in expect["equalPaths"]
        }
        return
    version = f"apps.kruise.io/{expect['toVersion']}"
    found = converted(given, version)
    assert found["apiVersion"] == version
    assert {path: at(found, path) for path in expect["checks"]} == expect["checks"]


def converted(document: Document, version: str) -> Document:
    request = {"uid": "u", "desiredAPIVersion": version, "objects": [document]}
    answer = decoded_answer(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    )
    assert (answer["uid"], answer["result"]) == ("u", {"status": "Success"})
    [found] = answer["convertedObjects"]
    return dict(found)


def decoded_answer(review: Document) -> Document:
    answer: Document = orjson.loads(answer_conversion(encoded(review)))["response"]
    return answer


STORABLE = [c for c in CASES if c["table"] == "conversion" and not c.get("schemaInvalid")]


@pytest.mark.parametrize("reached", [in_process, over_https], ids=["in process", "over https"])
@pytest.mark.parametrize("case", STORABLE, ids=of)
async def test_versions_are_converted_as_they_are_written_and_read(
    case: Case, reached: Worlds
) -> None:
    given, expect = case["workloadspread"], case["expect"]
    name = given["metadata"]["name"]
    wanted = OLD_SPREADS if expect.get("roundTrip") else SPREADS
    async with reached(DEFINITION) as world:
        made = await world.made(OLD_SPREADS, given)
        path = f"{OLD_SPREADS}/{name}/status"
        status, answer = await world.ask("PUT", path, {**made, "status": given["status"]})
        assert status == 200, answer
        found = await world.get(f"{wanted}/{name}")
    assert {p: at(found, p) for p in expect.get("equalPaths", ())} == {
        p: at(given, p) for p in expect.get("equalPaths", ())
    }
    assert {p: at(found, p) for p in expect.get("checks", {})} == expect.get("checks", {})
