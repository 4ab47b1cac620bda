"""WorkloadSpreads that are created or changed are validated together with other objects."""

from __future__ import annotations

from typing import Any

import pytest

from extender.controllers.webhooks.registration import VALIDATE
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import Resource
from tests.builders.workloadspread import Document, clone_set_json, spread_json, target_json
from tests.extender.controllers.webhooks.stages import webhook_stage
from tests.stage import OLD_SPREADS, SPREADS, Stage

TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}


async def refusal(stage: Stage, document: Document, resource: Resource = SPREADS) -> str:
    with pytest.raises(ApiError) as error:
        await stage.create(resource, document)
    assert error.value.status == 400
    denied = f'admission webhook "{VALIDATE}" denied the request: '
    assert error.value.message.startswith(denied)
    return error.value.message.removeprefix(denied)


@pytest.mark.parametrize(
    ("subsets", "message"),
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
async def test_errors_are_those_of_upstream(subsets: list[Document], message: str) -> None:
    async with webhook_stage() as stage:
        assert await refusal(stage, spread_json(*subsets)) == message


async def test_several_errors_are_reported_together() -> None:
    async with webhook_stage() as stage:
        message = await refusal(stage, spread_json(targetRef=target_json("Job")))
    assert message == (
        "[spec.targetRef: Invalid value: TargetReference is not valid for Job., "
        "spec.subsets: Required value: subsets number must >= 1 in WorkloadSpread]"
    )


async def test_the_old_version_is_validated_as_well() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists", "values": ["a"]}]}
    document = spread_json({"name": "a", "requiredNodeSelectorTerm": term})
    document["apiVersion"] = "apps.kruise.io/v1alpha1"
    async with webhook_stage() as stage:
        message = await refusal(stage, document, OLD_SPREADS)
    assert message.startswith("spec.subsets[0].requiredNodeSelector.matchExpressions[0].values: ")


async def test_patches_are_validated_with_the_template_if_there_is_one() -> None:
    wrong = {"spec": {"containers": [{"name": "main", "image": ""}], "restartPolicy": "Sometimes"}}
    clone_set = clone_set_json(template=TEMPLATE)
    async with webhook_stage(clone_set) as stage:
        message = await refusal(stage, spread_json({"name": "a", "patch": wrong}))
        assert "spec.subsets[0].patch.restartPolicy: Unsupported value" in message
        elsewhere = target_json("CloneSet", "apps.kruise.io/v1alpha1", "none")
        fine = spread_json({"name": "a", "patch": wrong}, name="other", targetRef=elsewhere)
        await stage.create(SPREADS, fine)


async def test_only_the_version_of_a_target_may_change() -> None:
    def to(**fields: Any) -> Document:
        return {"spec": {"targetRef": fields}}

    async with webhook_stage(spread_json({"name": "a"})) as stage:
        await stage.patch(SPREADS, "web", to(apiVersion="apps.kruise.io/v1beta1"))
        with pytest.raises(ApiError, match="change TargetReference is not permitted"):
            await stage.patch(SPREADS, "web", to(name="other"))


async def test_a_new_workload_spread_of_the_same_name_may_have_another_target() -> None:
    deployment = target_json("Deployment")
    async with webhook_stage(spread_json({"name": "a"})) as stage:
        await stage.delete(SPREADS, "web")
        await stage.create(SPREADS, spread_json({"name": "a"}, targetRef=deployment))
