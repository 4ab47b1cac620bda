"""The configuration file, its policies, and the errors reported for mistakes in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from extender.config.component_config import (
    Config,
    LogConfig,
    TlsConfig,
    load_config,
)
from extender.config.strict_decoding import ConfigError
from extender.protocol.verb_context import Search
from extender.terminal.log_output import LogFormat, LogLevel


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", ["{}", "", "# port: 1\n", "---\n", "null"])
def test_every_field_is_optional(tmp_path: Path, text: str) -> None:
    assert load_config(written(tmp_path, text)) == Config()
    assert Config() == Config(
        host="127.0.0.1",
        port=8888,
        path_prefixes=(),
        body_limit_mib=64,
        policy="kube-scheduler",
        search=Search.CLUSTER,
        upstream="1.38",
        promise_seconds=30.0,
        log=LogConfig(LogLevel.INFO, LogFormat.JSON),
    )


def test_every_field_can_be_set(tmp_path: Path) -> None:
    text = """
host: 0.0.0.0
port: 0
workers: 2
pathPrefixes: [/scheduler, /a/b]
bodyLimitMiB: 1
policy: own.yaml
search: offered
upstream: "1.31"
featureGates: {NodeDeclaredFeatures: false}
promiseSeconds: 2.5
schedulerNames: [default-scheduler, batch-scheduler]
log: {level: warning, format: text}
"""
    assert load_config(written(tmp_path, text)) == Config(
        "0.0.0.0",  # noqa: S104 - a text that is read, not a bind
        0,
        2,
        ("/scheduler", "/a/b"),
        1,
        str(tmp_path / "own.yaml"),
        Search.OFFERED,
        "1.31",
        {"NodeDeclaredFeatures": False},
        2.5,
        scheduler_names=("default-scheduler", "batch-scheduler"),
        log=LogConfig(LogLevel.WARNING, LogFormat.TEXT),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("port: many", "port: Expected int, got str"),
        ("port: 65536", "port: Expected int <= 65535"),
        ("bodyLimitMiB: 0", "bodyLimitMiB: Expected int >= 1"),
        ("search: everywhere", "search: Invalid enum value 'everywhere'"),
        ("upstream: [1.30]", "upstream: Expected str, got array"),
        ("featureGates: {A: 1}", "featureGates.A: Expected bool, got int"),
        ("promiseSeconds: -1", "promiseSeconds: Expected float >= 0.0"),
        ("schedulerNames: batch", "schedulerNames: Expected array, got str"),
        ("schedulerNames: ['']", "schedulerNames[0]: Expected str of length >= 1"),
        ("pathPrefixes: /scheduler", "pathPrefixes: Expected array, got str"),
        ("pathPrefixes: [1]", "pathPrefixes[0]: Expected str, got int"),
        ("xyz: 1", "(the document): Object contains unknown field xyz; expected one of host, "),
        ("hots: 1\nport: 1", "(the document): Object contains unknown field hots; did you mean ho"),
        ("[]", "(the document): Expected object, got array"),
        ("a: [", "not YAML: "),
        ("\x00", "not YAML: "),
    ],
)
def test_a_mistake_names_file_field_and_what_was_expected(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    place = re.escape(str(path)) + (": " if problem.startswith("not YAML") else r":\d+: ")
    assert re.match(place + re.escape(problem), str(raised.value))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("release", ["1.30", "1.38"])
def test_a_release_may_be_written_as_a_number(tmp_path: Path, release: str) -> None:
    assert load_config(written(tmp_path, f"upstream: {release}")).upstream == release


def test_pem_files_are_relative_to_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "reprieve.yaml"
    file.write_text("tls: {certificate: pki/tls.crt, key: /etc/tls.key}")
    assert load_config(file).tls == TlsConfig(f"{tmp_path}/pki/tls.crt", "/etc/tls.key")
