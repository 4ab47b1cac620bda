"""Files of Kubernetes objects, in every form that kubectl prints and users write."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import msgspec
import pytest

from extender.kube.decoders.manifests import (
    Document,
    Manifest,
    ManifestError,
    decode_document,
    read_documents,
    read_manifests,
)

WEB = '{"kind":"Pod","metadata":{"name":"web"}}'
NODE = '{"kind":"Node","metadata":{"name":"node-1"}}'
PRETTY_WEB = json.dumps(json.loads(WEB), indent=2)
PRETTY_NODE = json.dumps(json.loads(NODE), indent=2)
BOTH = [("Pod", "web"), ("Node", "node-1")]


def read(tmp_path: Path, content: str | bytes) -> list[Manifest]:
    path = tmp_path / "file"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_manifests(str(path))


def named(manifests: list[Manifest]) -> list[tuple[str, str]]:
    return [(each.kind, json.loads(each.raw)["metadata"]["name"]) for each in manifests]


@pytest.mark.parametrize(
    "content",
    [
        f"{WEB}\n{NODE}\n",
        f"\n{WEB}\n\n{NODE}",
        f"{PRETTY_WEB}\n{PRETTY_NODE}\n",
        f"  {PRETTY_WEB}{PRETTY_NODE}",
        f"{WEB}{NODE}",
        f'{{"kind":"List","items":[{WEB},{NODE}]}}',
        f'{{"kind":"List","items":[{WEB},{{"kind":"List","items":[{NODE}]}}]}}',
        f"---\n{WEB}\n---\n{NODE}\n",
        f"---\n---\n{PRETTY_WEB}\n---\n# nothing\n---\n{PRETTY_NODE}\n...\n",
        "kind: Pod\nmetadata: {name: web}\n---\nkind: Node\nmetadata: {name: node-1}\n",
        "{kind: Pod, metadata: {name: web}}\n---\n{kind: Node, metadata: {name: node-1}}\n",
        "kind: List\nitems:\n- kind: Pod\n  metadata: {name: web}\n- " + NODE,
    ],
    ids=[
        "JSON lines",
        "JSON lines with gaps",
        "JSON documents",
        "JSON documents without a gap",
        "JSON documents on one line",
        "List",
        "List in a List",
        "JSON in YAML documents",
        "pretty JSON in YAML documents",
        "YAML documents",
        "YAML that looks like JSON",
        "YAML List",
    ],
)
def test_every_format_gives_the_same_objects(tmp_path: Path, content: str) -> None:
    assert named(read(tmp_path, content)) == BOTH
    assert named(read(tmp_path, gzip.compress(content.encode(), mtime=0))) == BOTH


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{WEB}\n{NODE}".encode())))
    found = read_manifests("-")
    assert named(found) == BOTH
    assert [each.source for each in found] == ["standard input[0]", "standard input[1]"]


def test_items_of_a_typed_list_need_no_kind(tmp_path: Path) -> None:
    # An API server leaves kind and apiVersion out of the items of its lists.
    content = '{"kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}'
    assert named(read(tmp_path, content)) == [("Pod", "a"), ("Pod", "b")]


@pytest.mark.parametrize("content", ["", "\n", "---\n", '{"kind":"List","items":[]}'])
def test_an_empty_file_has_no_objects(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == []


def test_objects_have_their_place_in_the_file(tmp_path: Path) -> None:
    [web, node] = read(tmp_path, f'{WEB}\n{{"kind":"List","items":[{NODE}]}}')
    assert web.source == f"{tmp_path / 'file'}[0]"
    assert node.source == f"{tmp_path / 'file'}[1].items[0]"


def test_times_in_yaml_stay_strings(tmp_path: Path) -> None:
    text = "kind: Pod\nstatus:\n  startTime: 2026-01-02T03:04:05Z\n  day: 2026-01-02\n"
    [pod] = read(tmp_path, text)
    assert json.loads(pod.raw)["status"] == {
        "startTime": "2026-01-02T03:04:05Z",
        "day": "2026-01-02",
    }


def test_numbers_and_keys_in_yaml_become_json(tmp_path: Path) -> None:
    [pod] = read(tmp_path, "kind: Pod\nspec: {priority: 10, cpu: 0.5}\nlabels: {1: a}\n")
    assert json.loads(pod.raw) == {
        "kind": "Pod",
        "spec": {"priority": 10, "cpu": 0.5},
        "labels": {"1": "a"},
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"kind":"Pod"', ": neither JSON nor YAML: "),
        (b"kind: [", ": neither JSON nor YAML: "),
        (b"kind: Pod\n\tname: a\n", ": neither JSON nor YAML: "),
        (b"\xff\xfe\xff", ": neither JSON nor YAML: "),
        (b'{"kind":"Pod","name":"\xff\xff"} x', ": neither JSON nor YAML: "),
        (b"just a text", "[0]: expected a Kubernetes object, with texts for apiVersion and kind"),
        (b"[1, 2]", "[0]: expected a Kubernetes object, with texts for apiVersion and kind"),
        (b'{"kind":"Pod","apiVersion":1}', "[0]: expected a Kubernetes object, with texts"),
        (b'{"kind":"Pod","spec":{"\xff":1}}', ": neither JSON nor YAML: "),
        (b'{"kind":5}', "[0]: expected a Kubernetes object, with texts for apiVersion and kind"),
        (b'{"kind":"\xff"}', ": neither JSON nor YAML: "),
        (b"{}", "[0]: has no kind; expected a Kubernetes object"),
        (b'{"kind":"Pod"}\n{"metadata":{}}', "[1]: has no kind; expected a Kubernetes object"),
        (b'{"kind":"List","items":[{}]}', "[0].items[0]: has no kind; expected a Kubernetes"),
        (b'{"kind":"PodList","items":[5]}', "[0].items[0]: expected a Kubernetes object"),
        (b"kind: Pod\ntrue: a\n", ": not a Kubernetes document: "),
        (b"\x1f\x8bnot gzip", ": cannot be read: "),
        (gzip.compress(b"{}", mtime=0)[:-9], ": cannot be read: "),
        (b"[" * 10**5, ": nested too deeply"),
        (b'{"kind":' + b"[" * 10**5 + b"]" * 10**5 + b"}", ": nested too deeply"),
    ],
)
def test_an_error_has_file_and_place_in_one_line(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    with pytest.raises(ManifestError) as raised:
        read(tmp_path, content)
    assert str(raised.value).startswith(f"{tmp_path / 'file'}{problem}")
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    path = str(tmp_path / "none.yaml")
    with pytest.raises(ManifestError) as raised:
        read_manifests(path)
    assert str(raised.value) == f"{path}: cannot be read: No such file or directory"


def test_many_documents_are_read_in_linear_time(tmp_path: Path) -> None:
    assert len(read(tmp_path, f"{PRETTY_WEB}\n" * 20_000)) == 20_000


def test_documents_without_a_kind_are_read_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"a": 1}\n{"a": "x"}\n')
    first, second = read_documents(str(path))
    numbers = msgspec.json.Decoder(dict[str, int])
    assert decode_document(numbers, first) == {"a": 1}
    with pytest.raises(ManifestError) as raised:
        decode_document(numbers, second)
    assert str(raised.value) == f"{path}[1]: [...]: expected int, got str"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"{", "x: not JSON: Input data was truncated"),
        (b'{"a": "\xff"}', "x: not JSON: 'utf-8' codec can't decode"),
        (b"[" * 10**5, "x: nested too deeply"),
    ],
    ids=["cut off", "not UTF-8", "deep"],
)
def test_an_invalid_document_is_reported(raw: bytes, problem: str) -> None:
    with pytest.raises(ManifestError) as raised:
        decode_document(msgspec.json.Decoder(object), Document(raw, "x"))
    assert str(raised.value).startswith(problem)
