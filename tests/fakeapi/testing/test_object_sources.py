"""What a cluster loads: objects, models of client libraries, files, globs, and text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes.client
import kubernetes_asyncio.client
import orjson
import pytest

from extender.kube.decoders.manifests import ManifestError
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.apiserver.endpoints import StatusError
from fakeapi.testing.object_sources import manifest_of, read_objects
from fakeapi.testing.process_cluster import ProcessCluster
from tests.builders import manifest
from tests.builders.definitions import INTEGER, definition

A, B = (manifest("Node", name) for name in "ab")
YAML = """
kind: Node
apiVersion: v1
metadata: {name: a}
---
kind: Node
apiVersion: v1
metadata: {name: b}
"""

SOURCES: dict[str, Callable[[Path], Any]] = {
    "objects": lambda _: [A, B],
    "a list document": lambda _: {"apiVersion": "v1", "kind": "List", "items": [A, B]},
    "a generator": lambda _: (each for each in (A, B)),
    "a glob": lambda folder: str(folder / "*.json"),
    "a glob of a whole tree": lambda folder: f"{folder.parent}/**/*.json",
    "paths": lambda folder: [folder / "a.json", str(folder / "b.json")],
    "YAML": lambda _: YAML,
    "JSON": lambda _: orjson.dumps([A, B][0]).decode() + "\n" + orjson.dumps(B).decode(),
    "all of them": lambda folder: [A, folder / "b.json"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a file for each of two nodes."""
    files = tmp_path / "manifests"
    files.mkdir()
    for name, node in (("a", A), ("b", B)):
        (files / f"{name}.json").write_bytes(orjson.dumps(node))
    return files


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_objects_are_loaded_from_everywhere(folder: Path, source: Callable[[Path], Any]) -> None:
    documents, _ = read_objects(source(folder))
    assert list(documents) == [A, B]


LABELS = {"a": "b"}
META = {"name": "web", "labels": LABELS}
MODELS: dict[str, Any] = {
    "kubernetes": kubernetes.client.V1Pod(
        metadata=kubernetes.client.V1ObjectMeta(name="web", labels=LABELS),
        spec=kubernetes.client.V1PodSpec(containers=[], node_name="n"),
    ),
    "kubernetes_asyncio": kubernetes_asyncio.client.V1Pod(
        metadata=kubernetes_asyncio.client.V1ObjectMeta(name="web", labels=LABELS),
        spec=kubernetes_asyncio.client.V1PodSpec(containers=[], node_name="n"),
    ),
}


@pytest.mark.parametrize("library", MODELS)
def test_a_model_is_a_manifest(library: str) -> None:
    assert manifest_of(MODELS[library]) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": META,
        "spec": {"containers": [], "nodeName": "n"},
    }


REFUSED: dict[str, tuple[Any, str]] = {
    "no such file": ("none.yaml", "none.yaml: cannot be read: No such file or directory"),
    "no file of a glob": ("none/*.yaml", r"none/\*.yaml: no file matches"),
    "text without an object": ("a: b\n", r"text\[0\]: has no kind"),
    "a number": ([3], "expected an object, a path, a glob or text, found 3"),
    "a model of an ambiguous kind": (
        kubernetes_asyncio.client.CoreV1Event(
            involved_object=kubernetes_asyncio.client.V1ObjectReference(),
            metadata=kubernetes_asyncio.client.V1ObjectMeta(),
        ),
        "CoreV1Event: expected its apiVersion and kind to be set",
    ),
}


@pytest.mark.parametrize(("source", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_one_line(source: Any, problem: str) -> None:
    with pytest.raises(ManifestError, match=problem) as raised:
        read_objects(source)
    assert "\n" not in str(raised.value)


async def test_problems_name_the_file(tmp_path: Path) -> None:
    crd, widgets = tmp_path / "z-crd.json", tmp_path / "widgets.json"
    crd.write_bytes(orjson.dumps(definition(spec={"size": INTEGER})))
    widget = {**manifest("Widget", "one"), "apiVersion": "example.com/v1"}
    invalid = {**widget, "spec": {"size": "big"}}
    widgets.write_bytes(orjson.dumps({"kind": "List", "items": [widget, invalid]}))
    async with VirtualCluster() as cluster:
        with pytest.raises(StatusError) as raised:
            cluster.load([A, f"{tmp_path}/*.json"])
    assert str(raised.value).startswith(
        f"{widgets}[0].items[1]: Widget default/one: spec.size: Invalid value: "
    )


@pytest.mark.parametrize("create", [FakeCluster.in_thread, FakeCluster.as_process])
def test_problems_name_the_file_in_every_form(create: Any, tmp_path: Path) -> None:
    path = tmp_path / "widget.json"
    path.write_bytes(orjson.dumps(manifest("Widget", "one")))
    with create() as cluster, pytest.raises(StatusError) as raised:
        cluster.load([A, path])
    assert str(raised.value).startswith(
        f"{path}[0]: Widget default/one: no kind 'Widget' in version 'v1'"
    )


def test_a_process_loads_definitions_and_objects_from_files_in_any_order(tmp_path: Path) -> None:
    crd, widgets = tmp_path / "crd.json", tmp_path / "widgets.json"
    crd.write_bytes(orjson.dumps(definition(spec={"size": {**INTEGER, "default": 3}})))
    widget = {**manifest("Widget", "one"), "apiVersion": "example.com/v1", "spec": {}}
    widgets.write_bytes(orjson.dumps(widget))
    with ProcessCluster(("--load", f"{tmp_path}/w*.json", "--load", str(crd))) as cluster:
        assert cluster.get("Widget", "one")["spec"] == {"size": 3}
