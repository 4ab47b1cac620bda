"""The configuration file, its policies, and the errors reported for mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.config.component_config import (
    Config,
    LogConfig,
    TlsConfig,
    find_policy,
    load_config,
)
from extender.config.strict_decoding import ConfigError
from extender.protocol.verb_context import Search
from extender.terminal.log_output import LogFormat, LogLevel
from policies import decide_preemption
from policies.preemption.policy import KUBE_SCHEDULER, Policy, SchedulerRules
from tests.builders import node, pod, snapshot


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
        ("featureGates: {A: 1}", "featureGates[...]: Expected bool, got int"),
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
    assert str(raised.value).startswith(f"{path}: {problem}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("release", ["1.30", "1.38"])
def test_a_release_may_be_written_as_a_number(tmp_path: Path, release: str) -> None:
    assert load_config(written(tmp_path, f"upstream: {release}")).upstream == release


class TestPolicies:
    def chosen(self, policy: Policy) -> tuple[str, list[str]]:
        """Return the node and the victims for a pod of priority 10."""
        moment = snapshot(
            node("node-1", cpu="2"),
            pod("web", on="node-1", cpu="2", priority=5, labels={"role": "db"}),
            node("node-2", cpu="2"),
            pod("a", on="node-2", cpu="1", priority=1),
            pod("b", on="node-2", cpu="1", priority=1, namespace="kube-system"),
        )
        decision = decide_preemption(
            pod("vip", cpu="2", priority=10), moment, SchedulerRules(policy=policy)
        )
        assert decision.chosen is not None
        return decision.chosen.node, [each.name for each in decision.chosen.victims.pods]

    def test_the_built_in_policy_is_found_by_its_name(self) -> None:
        assert find_policy("kube-scheduler") is KUBE_SCHEDULER
        assert self.chosen(KUBE_SCHEDULER) == ("node-2", ["a", "b"])

    def test_a_policy_file_sets_the_order_of_criteria(self, tmp_path: Path) -> None:
        path = written(tmp_path, "name: own\ncandidates: [fewest victims]\n")
        policy = find_policy(str(path))
        assert policy.name == "own"
        assert self.chosen(policy) == ("node-1", ["web"])

    @pytest.mark.parametrize(
        ("protection", "chosen"),
        [
            ("namespaces: [kube-system]", ("node-1", ["web"])),
            ("selector: {matchLabels: {role: db}}", ("node-2", ["a", "b"])),
            (
                "selector: {matchExpressions: [{key: role, operator: In, values: [db]}]}",
                ("node-2", ["a", "b"]),
            ),
            (
                "selector: {matchExpressions: [{key: role, operator: DoesNotExist}]}",
                ("node-1", ["web"]),
            ),
            # Both together: a pod must stand in the namespace and match.
            (
                "namespaces: [kube-system], selector: {matchLabels: {role: db}}",
                ("node-2", ["a", "b"]),
            ),
        ],
    )
    def test_guards_protect_pods(
        self, tmp_path: Path, protection: str, chosen: tuple[str, list[str]]
    ) -> None:
        path = written(tmp_path, f"name: own\nprotect:\n- {{name: them, {protection}}}\n")
        assert self.chosen(find_policy(str(path))) == chosen

    @pytest.mark.parametrize(
        ("selector", "problem"),
        [
            ("{matchLabel: {a: b}}", ": Object contains unknown field matchLabel"),
            ("{matchLabels: {a: 1}}", ".matchLabels[...]: Expected str, got int"),
            ("{matchLabels: null}", ".matchLabels: Expected object, got null"),
            ("{matchExpressions: null}", ".matchExpressions: Expected array, got null"),
            (
                "{matchExpressions: [{key: a, operator: In, value: b}]}",
                ".matchExpressions[0]: Object contains unknown field value",
            ),
            (
                "{matchExpressions: [{operator: Exists}]}",
                ".matchExpressions[0]: Object missing required field key",
            ),
            (
                "{matchExpressions: [{key: a, operator: Near}]}",
                ": 'Near' is not a valid label selector operator",
            ),
        ],
    )
    def test_an_invalid_selector_is_refused(
        self, tmp_path: Path, selector: str, problem: str
    ) -> None:
        path = written(tmp_path, f"name: own\nprotect: [{{name: them, selector: {selector}}}]")
        with pytest.raises(ConfigError) as raised:
            find_policy(str(path))
        assert str(raised.value).startswith(f"{path}: protect[0].selector{problem}")

    def test_a_policy_is_a_name_or_a_file(self) -> None:
        problem = "policy 'kube': no such file or built-in policy (kube-scheduler)"
        with pytest.raises(ConfigError) as raised:
            find_policy("kube")
        assert str(raised.value) == problem

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "(the document): Object missing required field name"),
            ("victims: []", "(the document): Object missing required field name"),
            ("name: 5", "name: Expected str, got int"),
            ("name: own\nguards: []", "(the document): Object contains unknown field guards"),
            (
                "name: own\ncandidates: [cheapest]",
                "candidates: unknown criterion 'cheapest'; expected some of ['fewest PDB",
            ),
            (
                "name: own\nvictims: [oldest]",
                "victims: unknown criterion 'oldest'; expected some of ['highest priority',",
            ),
            (
                "name: own\nprotect: [{name: all}]",
                "protect[0]: protects nothing; expected namespaces, a selector, or both",
            ),
            ("name: own\nprotect: [{namespaces: [a]}]", "protect[0]: Object missing required"),
        ],
    )
    def test_a_mistake_names_file_field_and_what_was_expected(
        self, tmp_path: Path, text: str, problem: str
    ) -> None:
        path = written(tmp_path, text)
        with pytest.raises(ConfigError) as raised:
            find_policy(str(path))
        assert str(raised.value).startswith(f"{path}: {problem}")


def test_pem_files_are_relative_to_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "reprieve.yaml"
    file.write_text("tls: {certificate: pki/tls.crt, key: /etc/tls.key}")
    assert load_config(file).tls == TlsConfig(f"{tmp_path}/pki/tls.crt", "/etc/tls.key")
