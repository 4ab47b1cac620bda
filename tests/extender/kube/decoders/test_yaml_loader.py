"""A file whose aliases stand for too much is refused with its line; others are read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from extender.cli.config_validation import load_serving_config
from extender.config.strict_decoding import ConfigError
from extender.kube.decoders.manifests import ManifestError, read_manifests
from extender.kube.decoders.yaml_loader import (
    MAX_ALIASED_NODES,
    MAX_DEPTH,
    BoundedLoader,
    load_document,
)
from extender.kube.rest.api_errors import ConnectionConfigError
from extender.kube.rest.kubeconfig import kubeconfig_endpoint
from fakeapi.controlplane.kubelet.script_parser import parse_script
from fakeapi.controlplane.kubelet.scripts import ScriptError
from fakeapi.controlplane.scheduler.configuration_loader import load_scheduler_configuration
from fakeapi.controlplane.scheduler.options import SchedulerConfigError
from policies.kubernetes.releases import NEWEST
from tests.extender.conftest import HandClock
from tests.faults.table import YAML_BOMBS


def bomb(first: str, following: str) -> str:
    """Write 30 lines, each of which refers to the one before it nine times."""
    levels = (following.format(",".join([f"*a{level}"] * 9)) for level in range(29))
    lines = [f"a{level}: &a{level} {text}" for level, text in enumerate((first, *levels))]
    return "\n".join(lines) + "\n"


TOO_MUCH = f"aliases stand for more than {MAX_ALIASED_NODES:,} nodes"
BOMBS = {
    "aliases in lists": (bomb("[x]", "[{}]"), TOO_MUCH),
    "aliases in mappings": (bomb("{x: y}", "{{? [{}] : 1}}"), TOO_MUCH),
    "merge keys": (bomb("{x: y}", "{{<<: [{}]}}"), TOO_MUCH),
    "what contains it": ("a: &a [*a]\n", "the alias *a stands for what contains it"),
    "merged into itself": ("a: &a {<<: *a}\n", "the alias *a stands for what contains it"),
    "deep lists": ("a: " + "[" * 100_000, f"nested more than {MAX_DEPTH} levels deep"),
    "deep mappings": ("{a: " * 100_000, f"nested more than {MAX_DEPTH} levels deep"),
    "deep entries": ("- " * 100_000 + "a", f"nested more than {MAX_DEPTH} levels deep"),
}


def configured(path: Path) -> None:
    load_serving_config(path, {}, HandClock())


READERS: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "a configuration": (configured, ConfigError),
    "a cluster": (lambda path: read_manifests(str(path)), ManifestError),
    "a simulation script": (lambda path: parse_script(path.read_bytes()), ScriptError),
    "a scheduler's configuration": (
        lambda path: load_scheduler_configuration(path.read_bytes(), NEWEST),
        SchedulerConfigError,
    ),
    "a kubeconfig": (
        lambda path: asyncio.run(kubeconfig_endpoint(path)),
        ConnectionConfigError,
    ),
}


def test_the_table_counts_the_bombs() -> None:
    assert len(BOMBS) * len(READERS) == YAML_BOMBS.runs


@pytest.mark.parametrize(("text", "problem"), BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize(("read", "error"), READERS.values(), ids=READERS)
def test_a_bomb_is_refused_in_one_line_with_its_place(
    tmp_path: Path,
    text: str,
    problem: str,
    read: Callable[[Path], object],
    error: type[Exception],
) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    with pytest.raises(error) as raised:
        read(path)
    [line] = str(raised.value).splitlines()
    assert problem in line
    assert " in line " in line


@pytest.mark.parametrize(("read", "error"), READERS.values(), ids=READERS)
def test_a_document_of_the_greatest_depth_is_no_error_of_the_process(
    tmp_path: Path, read: Callable[[Path], object], error: type[Exception]
) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text("kind: Pod\nspec: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    with suppress(error):
        read(path)


def test_documents_of_a_stream_share_one_bound() -> None:
    document = "a: &a [" + "x," * 1000 + "]\nb: [" + "*a," * 20 + "]\n"
    assert len(list(yaml.load_all("---\n".join([document] * 4), BoundedLoader))) == 4
    with pytest.raises(yaml.YAMLError, match=TOO_MUCH):
        list(yaml.load_all("---\n".join([document] * 5), BoundedLoader))


def test_aliases_within_the_bound_are_read(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    labels = "metadata: {name: first, labels: &labels {app: web}}"
    path.write_text(
        f"kind: Pod\n{labels}\n---\nkind: Pod\nbase: &base {{x: 1}}\nspec: {{<<: *base}}\n"
    )
    assert [each.kind for each in read_manifests(str(path))] == ["Pod", "Pod"]


def test_a_document_without_aliases_may_be_of_any_size() -> None:
    numbers = list(range(2 * MAX_ALIASED_NODES))
    assert load_document(yaml.dump(numbers, Dumper=yaml.CSafeDumper)) == numbers


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: " + "1" * 5_000, "a value that is no int in line 1"),
        ("a: 0x" + "f" * 5_000, "a value that is no int in line 1"),
        ("a:\n  2026-02-31\n", "a value that is no timestamp in line 2"),
        ("a: !!float x", "a value that is no float in line 1"),
        ("a: !!bool x", "a value that is no bool in line 1"),
    ],
    ids=["digits", "hexadecimal digits", "day", "float", "bool"],
)
def test_a_scalar_that_its_tag_does_not_fit_is_refused_with_its_line(
    text: str, problem: str
) -> None:
    with pytest.raises(yaml.YAMLError) as refused:
        load_document(text)
    assert str(refused.value) == problem
