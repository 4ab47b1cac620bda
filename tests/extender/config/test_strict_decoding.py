"""Each error in a document is reported with its place, and the rest of it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from extender.cli.config_validation import load_serving_config
from extender.config.component_config import (
    Config,
    ConnectionLimits,
    DegradedConfig,
    FallbackConfig,
)
from extender.config.strict_decoding import MAX_ERRORS, ConfigError, decode_strictly
from extender.protocol.verb_context import FallbackKind
from tests.extender.conftest import HandClock

LIMITS = "connections, inFlightMiB, headerKiB, headerSeconds, bodySeconds, idleSeconds"
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "two fields": (
        {"port": "x", "promiseSeconds": -1, "host": "a"},
        ["port: Expected int, got str", "promiseSeconds: Expected float >= 0.0"],
    ),
    "elements are counted as they were written": (
        {"pathPrefixes": [1, "/a", 2, "/b", 3]},
        [f"pathPrefixes[{index}]: Expected str, got int" for index in (0, 2, 4)],
    ),
    "an unknown field beside a wrong one": (
        {"limits": {"conections": 1, "idleSeconds": 0, "connections": 5}},
        [
            "limits: Object contains unknown field conections; did you mean connections?",
            "limits.idleSeconds: Expected float > 0.0",
        ],
    ),
    "an unknown field with a backtick": (
        {"limits": {"a`b": 1}},
        [f"limits: Object contains unknown field ab; expected one of {LIMITS}"],
    ),
    "a missing field is reported once": (
        {"tls": {"certificate": "a", "clientCA": 5}},
        ["tls.clientCA: Expected str, got int", "tls: Object missing required field key"],
    ),
    "a required field that is wrong is not missing, too": (
        {"tls": {"certificate": "", "key": "b"}},
        ["tls.certificate: Expected str of length >= 1"],
    ),
    "one of a few": (
        {"degraded": {"late": {"filter": "never"}, "stale": {"preempt": 1}}},
        [
            "degraded.late.filter: Invalid enum value 'never'; expected one of error, veto, echo",
            "degraded.stale.preempt: Expected str, got int; expected one of error, veto, echo",
        ],
    ),
    "yes or no": (
        {"events": "yes"},
        ["events: Expected bool, got str; expected one of true, false"],
    ),
    "an unknown plugin": (
        {"pluginConfig": [{"name": "NodeAffinity"}, {"name": "Foo"}]},
        [
            (
                "pluginConfig[1].name: Invalid value 'Foo'; expected one of NodeResourcesFit, "
                "NodeAffinity, PodTopologySpread, DefaultPreemption, InterPodAffinity, "
                "NodeResourcesBalancedAllocation, VolumeBinding, DynamicResources"
            )
        ],
    ),
    "inside a plugin that is known": (
        {"pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultingType": "list"}}]},
        [
            (
                "pluginConfig[0].args.defaultingType: Invalid enum value 'list'; expected one of "
                "List, System"
            )
        ],
    ),
}


@pytest.mark.parametrize(("document", "errors"), CASES.values(), ids=CASES)
def test_each_error_has_its_line(document: dict[str, Any], errors: list[str]) -> None:
    result = decode_strictly(document, Config)
    assert sorted(each.text for each in result.errors) == sorted(errors)
    assert result.value is not None


def test_valid_documents_are_decoded() -> None:
    document = {"host": "a", "port": "x", "limits": {"connections": 5, "idleSeconds": 0}}
    assert decode_strictly(document, Config).value == Config(
        host="a", limits=ConnectionLimits(connections=5)
    )


@pytest.mark.parametrize("document", [None, [], "text", {1: 2}])
def test_a_value_that_is_no_object_is_rejected(document: object) -> None:
    result = decode_strictly(document, Config)
    assert result.value is None
    assert len(result.errors) == 1


def test_the_number_of_errors_is_limited() -> None:
    result = decode_strictly({"pathPrefixes": [5] * 100_000}, Config)
    assert result.value is None
    assert len(result.errors) == MAX_ERRORS + 1
    assert result.errors[-1].text == "(the document): there may be more errors"


def test_a_document_of_another_kind_has_one_error() -> None:
    result = decode_strictly({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, Config)
    assert result.value is None
    [error] = result.errors
    assert error.text.startswith(
        "(the document): Object contains unknown field apiVersion, kind, metadata; "
    )


class TestServing:
    """What ``check-config`` reports, and what is logged before anything is served."""

    def errors(self, tmp_path: Path, text: str, **given: Any) -> list[str]:
        path = tmp_path / "reprieve.yaml"
        path.write_text(text)
        with pytest.raises(ConfigError) as raised:
            load_serving_config(path, given, HandClock())
        assert str(raised.value) == "\n".join(raised.value.errors)
        return [error.replace(str(path), "F") for error in raised.value.errors]

    def test_decoding_and_validation_errors_are_reported_together(self, tmp_path: Path) -> None:
        text = """
port: many
upstream: "1.2"
policy: /none
host: 10.0.0.1
pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]
"""
        errors = self.errors(tmp_path, text)
        assert [line.split(";")[0] for line in errors] == [
            "F:2: port: Expected int, got str",
            "F:6: pluginConfig[1]: repeats a plugin",
            "F:3: upstream: unknown Kubernetes release '1.2'",
            "F:4: policy: policy '/none': no such file or built-in policy (kube-scheduler)",
            "F:5: host: 10.0.0.1 is no loopback address, and there is no tls",
        ]

    def test_an_error_in_a_flag_names_the_flag(self, tmp_path: Path) -> None:
        assert self.errors(tmp_path, "policy: /none", policy="/other", host="::") == [
            "--policy: policy '/other': no such file or built-in policy (kube-scheduler)",
            (
                "--host: :: is no loopback address, and there is no tls; expected tls, a loopback "
                "address, or allowPlainHTTP: true"
            ),
        ]

    def test_all_errors_of_a_policy_file_are_reported(self, tmp_path: Path) -> None:
        policy = tmp_path / "own.yaml"
        policy.write_text(
            "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\nmetdata: {}\n"
            "rules:\n- name: all\n  victims: 5\n"
        )
        assert self.errors(tmp_path, f"policy: {policy}") == [
            f"F:1: policy: {policy}:1: (the document): Object missing required field metadata",
            (
                f"F:1: policy: {policy}:3: (the document): Object contains unknown field metdata; "
                "did you mean metadata?"
            ),
            f"F:1: policy: {policy}:6: rules[0].victims: Expected object | array, got int",
        ]

    def test_certificates_are_validated(self, tmp_path: Path) -> None:
        text = "tls: {certificate: /none.crt, key: /none.key, allowedClientNames: [a]}"
        assert [line.partition("; ")[0] for line in self.errors(tmp_path, text)] == [
            "F:1: tls.allowedClientNames: requires tls.clientCA",
            "F:1: tls.certificate: /none.crt with tls.key /none.key: No such file or directory",
        ]

    def test_an_error_in_tls_does_not_mean_plain_http(self, tmp_path: Path) -> None:
        errors = self.errors(tmp_path, "host: 0.0.0.0\ntls: {certificate: a}")
        assert errors == ["F:2: tls: Object missing required field key"]

    @pytest.mark.parametrize(
        "text",
        [
            "{}",
            "host: localhost",
            "host: 127.0.0.9",
            'host: "::1"',
            "{host: 0.0.0.0, allowPlainHTTP: true}",
        ],
    )
    def test_plain_http_needs_a_loopback_address_or_permission(
        self, tmp_path: Path, text: str
    ) -> None:
        path = tmp_path / "reprieve.yaml"
        path.write_text(text)
        load_serving_config(path, {}, HandClock())

    def test_the_fields_of_an_object_are_optional(self, tmp_path: Path) -> None:
        path = tmp_path / "reprieve.yaml"
        path.write_text("degraded: {stale: {preempt: veto}}")
        expected = DegradedConfig(stale=FallbackConfig(preempt=FallbackKind.VETO))
        assert load_serving_config(path, {}, HandClock()).degraded == expected
