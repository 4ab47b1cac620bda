"""The service account and root CA of each namespace."""

from __future__ import annotations

from extender.kube.rest.resources import NAMESPACES, PODS
from fakeapi.controlplane.controllers.service_accounts import CONFIG_MAPS, SERVICE_ACCOUNTS
from tests.builders import manifest, running_pod
from tests.fakeapi.controlplane.conftest import SetStage

SHOP = manifest("Namespace", "shop")
ROOT_CA = "kube-root-ca.crt"


async def test_a_new_namespace_gets_an_account_and_the_certificate(set_stage: SetStage) -> None:
    stage = await set_stage("serviceaccounts")
    await stage.create(NAMESPACES, SHOP)
    await stage.passes(0)
    for namespace in ("shop", "default", "kube-system"):
        assert await stage.find(SERVICE_ACCOUNTS, "default", namespace)
        published = await stage.get(CONFIG_MAPS, ROOT_CA, namespace)
        assert published["data"] == {"ca.crt": ""}
        assert "kubernetes.io/description" in published["metadata"]["annotations"]


async def test_deleted_and_changed_objects_are_restored(set_stage: SetStage) -> None:
    stage = await set_stage("serviceaccounts")
    await stage.passes(1)
    await stage.delete(SERVICE_ACCOUNTS, "default")
    await stage.patch(CONFIG_MAPS, ROOT_CA, {"data": {"ca.crt": "forged", "more": ""}})
    await stage.passes(1)
    assert await stage.find(SERVICE_ACCOUNTS, "default")
    published = await stage.get(CONFIG_MAPS, ROOT_CA)
    assert published["data"] == {"ca.crt": ""}


async def test_a_terminating_namespace_gets_no_service_account(set_stage: SetStage) -> None:
    stage = await set_stage("serviceaccounts,namespaces")
    await stage.create(NAMESPACES, SHOP)
    await stage.passes(1)
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(60)
    assert await stage.find(NAMESPACES, "shop") is None


async def test_pods_get_their_account(set_stage: SetStage) -> None:
    stage = await set_stage("serviceaccounts")
    await stage.passes(0)
    pod = await stage.create(PODS, running_pod("p", "node"))
    assert pod["spec"]["serviceAccountName"] == "default"
