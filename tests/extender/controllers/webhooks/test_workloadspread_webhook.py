"""WorkloadSpreads that are made or changed, checked by what stands around them."""

from __future__ import annotations

from typing import Any

import pytest

from extender.controllers.webhooks.registration import VALIDATE
from extender.controllers.workloadspread.spread_cache import WORKLOAD_SPREADS
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import Resource
from tests.builders.workloadspread import Document, clone_set_json, spread_json
from tests.extender.controllers.webhooks.stages import KRUISE, stage
from tests.stage import Stage

OLD = Resource("apps.kruise.io", "v1alpha1", "workloadspreads", namespaced=True)
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}


async def refusal(stage: Stage, document: Document, resource: Resource = WORKLOAD_SPREADS) -> str:
    with pytest.raises(ApiError) as error:
        await stage.create(resource, document)
    assert error.value.status == 400
    denied = f'admission webhook "{VALIDATE}" denied the request: '
    assert error.value.message.startswith(denied)
    return error.value.message.removeprefix(denied)


@pytest.mark.parametrize(
    ("subsets", "told"),
    [
        ([], "spec.subsets: Required value: subsets number must >= 1 in WorkloadSpread"),
        (
            [{"name": "a"}, {"name": "a"}],
            "spec.subsets[1].name: Invalid value: duplicated subset name a",
        ),
        (
            [{"name": "a", "maxReplicas": -1}, {"name": "a"}],
            "spec.subsets[0].maxReplicas: Invalid value: maxReplicas is not valid for subset",
        ),
    ],
    ids=["none", "twice", "negative"],
)
async def test_it_is_refused_in_upstreams_words(subsets: list[Document], told: str) -> None:
    async with stage(*KRUISE) as world:
        assert await refusal(world, spread_json(*subsets)) == told


async def test_several_errors_are_reported_together() -> None:
    other = {"apiVersion": "apps/v1", "kind": "Job", "name": "x"}
    async with stage(*KRUISE) as world:
        told = await refusal(world, spread_json(targetRef=other))
    assert told == (
        "[spec.targetRef: Invalid value: TargetReference is not valid for Job., "
        "spec.subsets: Required value: subsets number must >= 1 in WorkloadSpread]"
    )


async def test_the_old_version_is_checked_as_well() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists", "values": ["a"]}]}
    document = spread_json({"name": "a", "requiredNodeSelectorTerm": term})
    document["apiVersion"] = "apps.kruise.io/v1alpha1"
    async with stage(*KRUISE) as world:
        told = await refusal(world, document, OLD)
    assert told.startswith("spec.subsets[0].requiredNodeSelector.matchExpressions[0].values: ")


async def test_patches_are_tried_on_the_template_that_there_is() -> None:
    wrong = {"spec": {"containers": [{"name": "main", "image": ""}], "restartPolicy": "Sometimes"}}
    there = clone_set_json(template=TEMPLATE)
    async with stage(*KRUISE, there) as world:
        told = await refusal(world, spread_json({"name": "a", "patch": wrong}))
        assert "spec.subsets[0].patch.restartPolicy: Unsupported value" in told
        elsewhere = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "none"}
        fine = spread_json({"name": "a", "patch": wrong}, name="other", targetRef=elsewhere)
        await world.create(WORKLOAD_SPREADS, fine)


async def test_a_target_stays_what_it_is_but_for_its_version() -> None:
    def to(**fields: Any) -> Document:
        return {"spec": {"targetRef": fields}}

    async with stage(*KRUISE, spread_json({"name": "a"})) as world:
        await world.patch(WORKLOAD_SPREADS, "web", to(apiVersion="apps.kruise.io/v1beta1"))
        with pytest.raises(ApiError, match="change TargetReference is not permitted"):
            await world.patch(WORKLOAD_SPREADS, "web", to(name="other"))


async def test_one_made_anew_under_its_old_name_may_have_another_target() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    async with stage(*KRUISE, spread_json({"name": "a"})) as world:
        await world.delete(WORKLOAD_SPREADS, "web")
        await world.create(WORKLOAD_SPREADS, spread_json({"name": "a"}, targetRef=reference))
