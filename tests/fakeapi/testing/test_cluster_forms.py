"""Every form of a cluster has the same methods: on the loop, in a thread, as a process, virtual."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapi import FakeCluster, VirtualCluster
from fakeapi.apiserver.endpoints import StatusError
from fakeapi.apiserver.testing.fault_injection import PlanError
from fakeapi.faults import fault
from fakeapi.testing.cluster import Cluster
from fakeapi.testing.object_waits import WaitTimeoutError
from tests.builders import manifest, pod_json
from tests.builders.definitions import INTEGER, definition

CREATE: dict[str, Callable[..., Any]] = {
    "loop": FakeCluster,
    "with": FakeCluster,
    "thread": FakeCluster.in_thread,
    "process": FakeCluster.as_process,
    "virtual": VirtualCluster,
}
SERVED = tuple(name for name in CREATE if name != "virtual")
WIDGET = {**manifest("Widget", "one"), "apiVersion": "example.com/v1", "spec": {}}
OBJECTS = [
    definition(spec={"size": {**INTEGER, "default": 3}}),
    WIDGET,
    manifest("Node", "n"),
    pod_json(name="web", labels={"app": "web"}),
    manifest("ConfigMap", "web", data={"color": "red"}),
    {**manifest("Deployment", "web"), "apiVersion": "apps/v1"},
]


async def enter(stack: AsyncExitStack, form: str, **options: Any) -> Any:
    """Start a cluster; it ends with the stack."""
    cluster = CREATE[form](**options)
    if form in ("loop", "virtual"):
        return await stack.enter_async_context(cluster)
    return stack.enter_context(cluster)


async def result(value: Any) -> Any:
    """Return the result of a call of any form."""
    return await value if isawaitable(value) else value


def started(method: Callable[..., Any], *arguments: Any, **options: Any) -> Awaitable[Any]:
    """Start a call that waits, and return its task."""
    call = partial(method, *arguments, **options)
    on_loop = isinstance(method.__self__, Cluster)  # type: ignore[attr-defined]
    return asyncio.ensure_future(call() if on_loop else asyncio.to_thread(call))


@pytest.fixture(params=CREATE)
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:
        yield await enter(stack, request.param, run="none", seed=3)


KINDS = {
    "pods": "Pod",
    "po": "Pod",
    "pod": "Pod",
    "Pod": "Pod",
    "Deployment": "Deployment",
    "deploy": "Deployment",
    "deployments.apps": "Deployment",
    "deployment.v1.apps": "Deployment",
    "Widget": "Widget",
    "widgets.example.com": "Widget",
    "cm": "ConfigMap",
    "no": "Node",
}


async def test_objects_are_read_by_the_names_that_kubectl_takes(cluster: Any) -> None:
    cluster.load(OBJECTS)
    for word, kind in KINDS.items():
        [listed] = await result(cluster.list(word))
        assert (listed["kind"], listed["apiVersion"][-2:]) == (kind, "v1")
        assert await result(cluster.get(word, listed["metadata"]["name"])) == listed
    with pytest.raises(StatusError, match="no kind 'gadgets' is served here"):
        await result(cluster.list("gadgets"))
    with pytest.raises(StatusError, match='pods "db" not found') as missing:
        await result(cluster.get("pod", "db"))
    assert missing.value.code == 404


async def test_objects_are_listed_by_namespace_and_labels(cluster: Any) -> None:
    cluster.load([pod_json(name="a", labels={"app": "a"}), pod_json(name="b", namespace="team")])
    listings = {
        "all": {},
        "one": {"namespace": "team"},
        "labelled": {"label_selector": "app=a"},
        "none": {"namespace": "team", "label_selector": "app=a"},
    }
    names = {
        title: [each["metadata"]["name"] for each in await result(cluster.list("po", **options))]
        for title, options in listings.items()
    }
    assert names == {"all": ["a", "b"], "one": ["b"], "labelled": ["a"], "none": []}


APPLIED: dict[str, Callable[[str], Any]] = {
    "objects": lambda _: [WIDGET, manifest("ConfigMap", "web"), OBJECTS[0]],
    "a glob": lambda folder: f"{folder}/*.yaml",
    "a path": lambda folder: Path(folder) / "all.yaml",
    "text": lambda folder: (Path(folder) / "all.yaml").read_text(),
    "a list document": lambda folder: yaml.safe_load((Path(folder) / "all.yaml").read_text()),
}


@pytest.mark.parametrize("source", APPLIED.values(), ids=APPLIED)
@pytest.mark.parametrize("form", ["thread", "virtual"])
async def test_objects_are_applied_from_everywhere(
    form: str, source: Callable[[str], Any], tmp_path: Path
) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": APPLIED["objects"]("")}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(listed))
    async with AsyncExitStack() as stack:
        cluster = await enter(stack, form, run="none")
        applied = await result(cluster.apply(source(str(tmp_path))))
        assert [each["kind"] for each in applied] == [
            "CustomResourceDefinition",
            "Widget",
            "ConfigMap",
        ]
        assert (await result(cluster.get("Widget", "one")))["spec"] == {"size": 3}


async def test_an_object_is_applied_and_deleted(cluster: Any) -> None:
    for color in ("red", "blue"):
        applied = await result(cluster.apply(manifest("ConfigMap", "web", data={"color": color})))
        assert applied["data"] == {"color": color}
    await result(cluster.delete("cm", "web"))
    assert await result(cluster.list("cm")) == []


async def test_an_invalid_object_is_not_applied(cluster: Any) -> None:
    with pytest.raises(StatusError, match="must be no more than 253") as raised:
        await result(cluster.apply(manifest("ConfigMap", "a" * 300)))
    assert raised.value.code == 422


READY = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
GOALS: dict[str, Any] = {
    "condition": "Ready",
    "condition as in kubectl": "condition=Ready=true",
    "jsonpath": "jsonpath={.status.phase}=Running",
    "predicate": lambda pod: pod.get("status", {}).get("phase") == "Running",
}


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
async def test_a_wait_ends_with_the_state(cluster: Any, goal: Any) -> None:
    cluster.load(pod_json(name="web"))
    waiting = started(cluster.wait_for, "pod", "web", goal, timeout=60)
    cluster.load({**pod_json(name="web"), "status": READY})
    assert (await waiting)["status"] == READY


async def test_waits_for_creation_and_deletion(cluster: Any) -> None:
    waiting = started(cluster.wait_for, "cm", "web", "create", timeout=60)
    await result(cluster.apply(manifest("ConfigMap", "web", data={"color": "red"})))
    assert (await waiting)["data"] == {"color": "red"}
    waiting = started(cluster.wait_for, "cm", "web", "delete", timeout=60)
    await result(cluster.delete("cm", "web"))
    await waiting
    assert await result(cluster.list("cm")) == []
    assert await result(cluster.wait_for("cm", "web", "delete")) == {}


async def test_a_wait_continues_after_its_watch_has_expired(cluster: Any) -> None:
    saved = cluster.snapshot()
    waiting = started(cluster.wait_for, "pod", "web", "Ready", timeout=60)
    cluster.load(pod_json(name="web"))
    cluster.restore(saved)
    cluster.load({**pod_json(name="web"), "status": READY})
    assert (await waiting)["status"] == READY


async def test_a_timeout_states_the_last_state(cluster: Any) -> None:
    cluster.load(manifest("ConfigMap", "web", data={"color": "red"}))
    with pytest.raises(WaitTimeoutError) as raised:
        await result(cluster.wait_for("cm", "web", "delete", timeout=0.1))
    text = str(raised.value)
    assert text.startswith("cm web: not delete within 0.1 s; its last state: {")
    assert '"data":{"color":"red"}' in text
    with pytest.raises(WaitTimeoutError, match=r"not Ready within 0.1 s; it does not exist$"):
        await result(cluster.wait_for("pod", "web", "Ready", timeout=0.1))


async def test_a_wait_for_an_unknown_kind_or_condition_is_refused(cluster: Any) -> None:
    with pytest.raises(StatusError, match="no kind 'gadget'"):
        await result(cluster.wait_for("gadget", "web", "Ready"))
    with pytest.raises(ValueError, match=r"jsonpath: expected \{.path\}=value, found"):
        await result(cluster.wait_for("pod", "web", "jsonpath=.status.phase"))


async def test_methods_are_neither_logged_nor_faulted(cluster: Any) -> None:
    cluster.faults.plan(fault(500))
    await result(cluster.apply(manifest("ConfigMap", "web")))
    await result(cluster.wait_for("cm", "web", "create"))
    assert len(await result(cluster.list("cm"))) == 1
    assert (list(cluster.requests), cluster.faults.injected) == ([], (0,))
    with pytest.raises(PlanError, match="no verb 'x'"):
        cluster.faults.plan(fault(500).on("x"))
    cluster.faults.end()


async def test_an_export_can_be_loaded(cluster: Any) -> None:
    cluster.load(OBJECTS)
    exported = cluster.export()
    cluster.reset()
    assert await result(cluster.list("nodes")) == []
    cluster.load(exported)
    assert (await result(cluster.get("Widget", "one")))["spec"] == {"size": 3}


async def test_a_fork_has_the_objects_of_a_snapshot(cluster: Any) -> None:
    cluster.load(manifest("Node", "a"))
    saved = cluster.snapshot()
    cluster.load(manifest("Node", "b"))
    async with AsyncExitStack() as stack:
        fork = cluster.fork(saved)
        if hasattr(fork, "__aenter__"):
            await stack.enter_async_context(fork)
        fork.load(manifest("Node", "c"))
        names = [
            [each["metadata"]["name"] for each in await result(world.list("nodes"))]
            for world in (cluster, fork)
        ]
    assert names == [["a", "b"], ["a", "c"]]


async def test_the_clock_is_stopped_and_advanced(cluster: Any) -> None:
    cluster.clock.run(0)
    before = cluster.clock.now_ns()
    await result(cluster.clock.advance(60))
    assert (cluster.clock.factor, cluster.clock.now_ns() - before) == (0, 60 * 10**9)


MISSING = {
    "thread": dict.fromkeys(("client", "api"), "only clusters on the test's event loop have it"),
    "process": {"world": "only clusters on the test's event loop have it", "color": "no attribute"},
    "virtual": dict.fromkeys(("url", "add_user"), "a virtual cluster has no socket"),
}


@pytest.mark.parametrize("form", MISSING)
def test_what_a_form_does_not_have_is_one_line(form: str) -> None:
    cluster = CREATE[form]()
    for name, text in MISSING[form].items():
        with pytest.raises(AttributeError, match=text) as raised:
            getattr(cluster, name)
        assert "\n" not in str(raised.value)


BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "devs"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"}],
}
VIEW = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "view"},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
}


def listed_pods(kubeconfig: Path) -> int:
    """Return the status of a list by the official client."""
    import kubernetes

    api = kubernetes.config.new_client_from_config(str(kubeconfig))
    try:
        return int(
            kubernetes.client.CoreV1Api(api).list_namespaced_pod_with_http_info("default")[1]
        )
    except kubernetes.client.ApiException as error:
        return int(error.status)


@pytest.mark.parametrize("form", SERVED)
async def test_a_user_may_do_what_its_groups_may(form: str) -> None:
    async with AsyncExitStack() as stack:
        cluster = await enter(stack, form, tls=True, rbac=True)
        alice = cluster.add_user("alice", groups=["devs"])
        assert alice.token in alice.kubeconfig_path.read_text()
        statuses = [await asyncio.to_thread(listed_pods, alice.kubeconfig_path)]
        cluster.load([VIEW, BINDING])
        statuses.append(await asyncio.to_thread(listed_pods, alice.kubeconfig_path))
    assert statuses == [403, 200]


@pytest.mark.parametrize("form", SERVED)
async def test_a_user_needs_tls(form: str) -> None:
    async with AsyncExitStack() as stack:
        cluster = await enter(stack, form)
        with pytest.raises(ValueError, match="expected a cluster with tls=True"):
            cluster.add_user("alice")
