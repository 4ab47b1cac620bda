"""Upstream's tables about webhooks, through the API server: what is stored, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from extender.controllers.webhooks.workloadspread_webhook import answer_conversion
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PODS
from tests.builders import encoded
from tests.builders.workloadspread import Document, decoded
from tests.extender.controllers.webhooks.stages import in_process, injection, over_https
from tests.policies.workloadspread.test_rule_vectors import assert_contains, at
from tests.policies.workloadspread.test_vectors import meaningful, versions
from tests.stage import OLD_SPREADS, SPREADS, ApiAccess
from tests.vectors.workloadspread import CASES, of

Case = dict[str, Any]
Opened = Callable[..., Any]
DENIED = 'admission webhook "create-pod.workloadspread.apps.kruise.io" denied the request: '
IN_BOTH_WAYS = pytest.mark.parametrize(
    "opened", [in_process, over_https], ids=["in process", "over https"]
)


def cases(*tables: str) -> pytest.MarkDecorator:
    found = [case for case in CASES if case["table"] in tables]
    return pytest.mark.parametrize("case", found, ids=of)


def documents(case: Case, *names: str) -> list[Document]:
    """Return the documents of a case that have these names."""
    given = [case.get(name) for name in names]
    several = [each for one in given for each in (one if isinstance(one, list) else [one])]
    return [each for each in several if each]


@IN_BOTH_WAYS
@cases("pod_webhook")
async def test_pods_are_created_and_deleted_as_upstream(case: Case, opened: Opened) -> None:
    [pod], expect = case["pods"], case["expect"]
    operation = case["operation"]
    existing = documents(case, "workloadspread", "workload", "extra")
    async with opened(*existing, *([] if operation == "Create" else [pod])) as stage:
        match operation:
            case "Create":
                await check_creation(stage, pod, expect)
            case "Delete":
                await stage.delete(PODS, pod["metadata"]["name"])
            case _:
                await stage.evict(pod["metadata"]["name"])
        status = await stage.status_of(SPREADS, case["workloadspread"]["metadata"]["name"])
    if expect["versionedSubsetStatuses"] is not None:
        assert versions(status) == versions(expect)
    if expect.get("missingReplicas"):
        [subsets] = status["versionedSubsetStatuses"].values()
        missing = {each["name"]: each["missingReplicas"] for each in subsets}
        assert missing == expect["missingReplicas"]


async def check_creation(stage: ApiAccess, pod: Document, expect: Document) -> None:
    if not expect["allowed"]:
        with pytest.raises(ApiError) as refused:
            await stage.create(PODS, pod)
        assert (refused.value.status, refused.value.message.startswith(DENIED)) == (500, True)
        return
    stored = await stage.create(PODS, pod)
    found = injection(stored) or {}
    assert found.get("subset") == expect["subset"]
    if expect["pod"] is not None:
        assert_contains(without_default_tolerations(stored), meaningful(decoded(expect["pod"])))
    if expect.get("generatedUID"):
        status = await stage.status_of(SPREADS, found["name"])
        [subsets] = status["versionedSubsetStatuses"].values()
        [chosen] = [each for each in subsets if each["name"] == found["subset"]]
        assert list(chosen["creatingPods"]) == [found["uid"]]


def without_default_tolerations(pod: Document) -> Document:
    """Remove the tolerations that the server adds to every pod."""
    written = [each for each in pod["spec"]["tolerations"] if "tolerationSeconds" not in each]
    return {**pod, "spec": {**pod["spec"], "tolerations": written}}


@cases("statefulset_ordinal")
async def test_the_ordinal_of_a_stateful_set_s_pod_decides(case: Case) -> None:
    name = case["workloadspread"]["metadata"]["name"]
    async with in_process(*documents(case, "workloadspread", "workload")) as stage:
        before = await stage.status_of(SPREADS, name)
        stored = [await stage.create(PODS, pod) for pod in case["pods"]]
        after = await stage.status_of(SPREADS, name)
    found = {each["metadata"]["name"]: (injection(each) or {}).get("subset") for each in stored}
    assert found == case["expect"]["subsets"]
    assert (after == before) == case["expect"]["statusUnchanged"]


@cases("validate_create", "validate_handler", "validate_patch", "validate_update")
async def test_workload_spreads_are_validated(case: Case) -> None:
    expect = case["expect"]
    refused = await write(case, "old", "existing", "workload")
    if expect.get("valid", expect.get("allowed")):
        assert refused is None
        return
    assert refused is not None
    assert refused.status == (422 if case.get("schemaInvalid") else 400), refused
    for text in (*expect.get("messages", ()), *expect.get("fields", ())):
        assert text in refused.message
    assert (expect.get("fieldPrefix") or "") in refused.message


@cases("validate_conflict")
async def test_two_workload_spreads_cannot_have_the_same_target(case: Case) -> None:
    refused = await write(case, "existing")
    [message] = case["expect"].get("messages") or ["is in conflict with other WorkloadSpread"]
    conflicts = refused is not None and message in refused.message
    assert conflicts == (not case["expect"]["valid"])


async def write(case: Case, *names: str) -> ApiError | None:
    """Create or update the WorkloadSpread of a case, and return why that is refused."""
    document, existing = case["workloadspread"], documents(case, *names)
    name = document["metadata"]["name"]
    known = [each["metadata"]["name"] for each in existing if "targetRef" in spec(each)]
    resource = OLD_SPREADS if document["apiVersion"].endswith("v1alpha1") else SPREADS
    async with in_process(*existing) as stage:
        try:
            if name not in known:
                await stage.create(resource, document)
                return None
            stored = await stage.get(resource, name)
            await stage.update(resource, {**document, "metadata": stored["metadata"]})
        except ApiError as error:
            return error
    return None


def spec(document: Document) -> Document:
    found: Document = document.get("spec") or {}
    return found


@cases("conversion")
def test_versions_are_converted(case: Case) -> None:
    document, expect = case["workloadspread"], case["expect"]
    if expect.get("roundTrip"):
        newer = converted(document, "apps.kruise.io/v1beta1")
        back = converted(newer, document["apiVersion"])
        assert_equal_paths(back, document, expect)
        return
    version = f"apps.kruise.io/{expect['toVersion']}"
    found = converted(document, version)
    assert found["apiVersion"] == version
    assert {path: at(found, path) for path in expect["checks"]} == expect["checks"]


def assert_equal_paths(found: Document, document: Document, expect: Document) -> None:
    paths = expect.get("equalPaths", ())
    assert {p: at(found, p) for p in paths} == {p: at(document, p) for p in paths}


def converted(document: Document, version: str) -> Document:
    request = {"uid": "u", "desiredAPIVersion": version, "objects": [document]}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    answer = orjson.loads(answer_conversion(encoded({**review, "request": request})))["response"]
    assert (answer["uid"], answer["result"]) == ("u", {"status": "Success"})
    [found] = answer["convertedObjects"]
    return dict(found)


STORABLE = [c for c in CASES if c["table"] == "conversion" and not c.get("schemaInvalid")]


@IN_BOTH_WAYS
@pytest.mark.parametrize("case", STORABLE, ids=of)
async def test_stored_objects_are_converted(case: Case, opened: Opened) -> None:
    document, expect = case["workloadspread"], case["expect"]
    resource = OLD_SPREADS if expect.get("roundTrip") else SPREADS
    async with opened() as stage:
        stored = await stage.create(OLD_SPREADS, document)
        await stage.update(OLD_SPREADS, {**stored, "status": document["status"]}, "status")
        found = await stage.get(resource, document["metadata"]["name"])
    assert_equal_paths(found, document, expect)
    assert {p: at(found, p) for p in expect.get("checks", {})} == expect.get("checks", {})
