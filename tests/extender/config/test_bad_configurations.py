"""Invalid configurations: a line for each error, from ``check-config`` and ``serve``.

In the lines F is the configuration file, D its folder, and P a policy file; ERRORS has no numbers
of lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from extender.config.component_config import Config

POLICY = """
apiVersion: reprieve.dev/v1alpha1
kind: PreemptionPolicy
metadata: {name: own}
rules:
- name: all
  guards: {protect: [{name: all, namespace: [a]}]}
  victims: [earliest]
"""

NOT_READ: dict[str, tuple[bytes, str]] = {
    "a list": (b"- port: 1\n", "(the document): Expected object, got array"),
    "a text": (b"port", "(the document): Expected object, got str"),
    "no YAML": (b"port: [1", "not YAML: while parsing a flow sequence"),
    "a tab": (b"limits:\n\tconnections: 1\n", "not YAML: while scanning for the next token"),
    "a tag": (b"port: !!python/name:os.system\n", "not YAML: could not determine a constructor"),
    "two documents": (b"port: 1\n---\nport: 2\n", "not YAML: expected a single document"),
    "not UTF-8": (b"host: caf\xe9\n", "not UTF-8: byte 9: invalid continuation byte"),
    "a NUL": (b"host: a\x00b\n", "not YAML: unacceptable character"),
    "an alias of nothing": (b"port: *there\n", "not YAML: found undefined alias"),
    "nested without end": (
        b"[" * 5000 + b"]" * 5000,
        "not YAML: nested more than 500 levels deep in line 1",
    ),
    "something else": (
        b"apiVersion: v1\nkind: Service\n",
        "(the document): Object contains unknown field apiVersion, kind; expected one of host, ",
    ),
}
"""Content → the beginning of its only error, after the file's name."""

ERRORS: dict[str, tuple[str, list[str]]] = {
    "a key that is written twice": (
        "port: 1\nlimits: {connections: 5, connections: 6}\nport: 2\n",
        [
            "F: limits.connections: written in lines 2 and 2; expected it once",
            "F: port: written in lines 1 and 3; expected it once",
        ],
    ),
    "twice, in a list": (
        "managedResources:\n- name: a/b\n  name: c/d\n",
        ["F: managedResources[0].name: written in lines 2 and 3; expected it once"],
    ),
    "numbers that are not finite": (
        "staleSeconds: .inf\npromiseSeconds: .nan\nlimits: {idleSeconds: -.inf}\n",
        [
            "F: staleSeconds: Expected float <= 1000000000.0",
            "F: promiseSeconds: Expected float >= 0.0",
            "F: limits.idleSeconds: Expected float > 0.0",
        ],
    ),
    "out of range": (
        (
            "port: -1\nbodyLimitMiB: 0\npromiseSeconds: -1\nqueueLimit: -1\nstaleSeconds: 0\n"
            "watchSilenceSeconds: 0\nshutdownDelaySeconds: -1\ndecisionsKept: -1\n"
            "limits: {connections: 0, headerKiB: 0, headerSeconds: 0, bodySeconds: 0}\n"
            "deadlineMilliseconds: {filter: 0, preempt: 1.5}\n"
            "tracing: {endpoint: http://a, sampleRatio: 2, timeoutSeconds: 0, serviceName: ''}\n"
        ),
        [
            "F: port: Expected int >= 0",
            "F: bodyLimitMiB: Expected int >= 1",
            "F: promiseSeconds: Expected float >= 0.0",
            "F: queueLimit: Expected int >= 0",
            "F: staleSeconds: Expected float > 0.0",
            "F: watchSilenceSeconds: Expected float > 0.0",
            "F: shutdownDelaySeconds: Expected float >= 0.0",
            "F: decisionsKept: Expected int >= 0",
            "F: limits.connections: Expected int >= 1",
            "F: limits.headerKiB: Expected int >= 1",
            "F: limits.headerSeconds: Expected float > 0.0",
            "F: limits.bodySeconds: Expected float > 0.0",
            "F: deadlineMilliseconds.filter: Expected int >= 1",
            "F: deadlineMilliseconds.preempt: Expected int, got float",
            "F: tracing.sampleRatio: Expected float <= 1.0",
            "F: tracing.timeoutSeconds: Expected float > 0.0",
            "F: tracing.serviceName: Expected str of length >= 1",
        ],
    ),
    "of another type": (
        (
            "host: 5\nport: '1'\npathPrefixes: a\npolicy: []\nsearch: 1\nupstream: 1\nevents: 1\n"
            "tls: yes\nlimits: []\ndegraded: error\ntracing: http://127.0.0.1\n"
            "managedResources: {}\npluginConfig: [NodeAffinity]\n"
        ),
        [
            "F: host: Expected str, got int",
            "F: port: Expected int, got str",
            "F: pathPrefixes: Expected array, got str",
            "F: policy: Expected str, got array",
            "F: search: Expected str, got int; expected one of offered, cluster",
            "F: upstream: Expected str, got int",
            "F: events: Expected bool, got int; expected one of true, false",
            "F: tls: Expected object | null, got bool",
            "F: limits: Expected object, got array",
            "F: degraded: Expected object, got str",
            "F: tracing: Expected object | null, got str",
            "F: managedResources: Expected array, got object",
            "F: pluginConfig[0]: Expected object, got str",
        ],
    ),
    "unknown names": (
        (
            "search: all\nupstream: '1.12'\npolicy: mine\n"
            "degraded: {late: {filter: panic}}\npluginConfig: [{name: Mine}]\n"
            "log: {level: fatal, format: xml}\n"
        ),
        [
            "F: search: Invalid enum value 'all'; expected one of offered, cluster",
            (
                "F: degraded.late.filter: Invalid enum value 'panic'; expected one of error, veto, "
                "echo"
            ),
            (
                "F: log.level: Invalid enum value 'fatal'; expected one of debug, info, warning, "
                "error"
            ),
            "F: log.format: Invalid enum value 'xml'; expected one of json, text",
            (
                "F: pluginConfig[0].name: Invalid value 'Mine'; expected one of NodeResourcesFit, "
                "NodeAffinity, PodTopologySpread, DefaultPreemption, InterPodAffinity, "
                "NodeResourcesBalancedAllocation, VolumeBinding, DynamicResources"
            ),
            (
                "F: upstream: unknown Kubernetes release '1.12'; expected one of 1.30, 1.31, 1.32, "
                "1.33, 1.34, 1.35, 1.36, 1.37, 1.38"
            ),
            "F: policy: policy 'D/mine': no such file or built-in policy (kube-scheduler)",
        ],
    ),
    "paths": (
        "pathPrefixes: [/scheduler, scheduler/, /, '', '/{a}', /b c]\n",
        [
            "F: pathPrefixes[1]: 'scheduler/' is served already; expected each only once",
            *(
                f"F: pathPrefixes[{index}]: {prefix!r}; expected a path such as /scheduler, of "
                "plain characters"
                for index, prefix in enumerate(["/", "", "/{a}", "/b c"], 2)
            ),
        ],
    ),
    "files that are not there": (
        "policy: D/none.yaml\ntls: {certificate: D/none.crt, key: D/none.key, clientCA: D/ca}\n",
        [
            ("F: policy: policy 'D/none.yaml': no such file or built-in policy (kube-scheduler)"),
            (
                "F: tls.certificate: D/none.crt with tls.key D/none.key: No such file or "
                "directory; expected a certificate chain in PEM, the server's first, and its key"
            ),
            (
                "F: tls.clientCA: D/ca: No such file or directory; expected certificates of "
                "authorities in PEM"
            ),
        ],
    ),
    "a policy that is a folder": ("policy: D\n", ["F: policy: D: cannot be read: Is a directory"]),
    "a policy that is a configuration": (
        "policy: F\n",
        [
            (
                "F: policy: F: (the document): Object contains unknown field policy; expected one "
                "of apiVersion, kind, metadata, rules"
            )
        ],
    ),
    "a policy with errors of its own": (
        "policy: P\n",
        [
            (
                "F: policy: P: rules[0].guards.protect[0]: Object contains unknown field "
                "namespace; did you mean namespaces?"
            ),
            (
                "F: policy: P: rules[0].victims[0]: unknown criterion 'earliest'; did you mean "
                "'earliest start'?"
            ),
        ],
    ),
    "several errors of plugins": (
        (
            "pluginConfig:\n"
            "- {name: NodeResourcesFit, args: {ignoredResourceGroups: [a/b, c, d/e]}}\n"
            "- {name: PodTopologySpread, args: {defaultConstraints: ["
            "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule},"
            "{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}\n"
            "- {name: PodTopologySpread}\n"
        ),
        [
            *(
                f"F: pluginConfig[0].args.ignoredResourceGroups[{index}]: {group!r}: expected a "
                "group without a slash"
                for index, group in ((0, "a/b"), (2, "d/e"))
            ),
            (
                "F: pluginConfig[1].args.defaultConstraints: expected none unless defaultingType "
                "is List"
            ),
            "F: pluginConfig[1].args.defaultConstraints[1]: repeats zone, DoNotSchedule",
            "F: pluginConfig[2]: repeats a plugin; expected each only once",
        ],
    ),
    "errors of plugins": (
        (
            "pluginConfig:\n"
            "- {name: NodeResourcesFit, args: {ignoredResourceGroups: [a/b]}}\n"
            "- {name: PodTopologySpread, args: {defaultConstraints: "
            "[{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: Never}]}}\n"
        ),
        [
            "F: pluginConfig[1].args.defaultConstraints[0].maxSkew: Expected int >= 1",
            (
                "F: pluginConfig[1].args.defaultConstraints[0].whenUnsatisfiable: Invalid enum "
                "value 'Never'; expected one of DoNotSchedule, ScheduleAnyway"
            ),
            (
                "F: pluginConfig[0].args.ignoredResourceGroups[0]: 'a/b': expected a group "
                "without a slash"
            ),
        ],
    ),
    "plain HTTP beyond loopback": (
        "host: 0.0.0.0\n",
        [
            (
                "F: host: 0.0.0.0 is no loopback address, and there is no tls; expected tls, a "
                "loopback address, or allowPlainHTTP: true"
            )
        ],
    ),
    "client names without an authority": (
        "tls: {certificate: D/a, key: D/b, allowedClientNames: [a]}\n",
        [
            "F: tls.allowedClientNames: requires tls.clientCA",
            (
                "F: tls.certificate: D/a with tls.key D/b: No such file or directory; expected a "
                "certificate chain in PEM, the server's first, and its key"
            ),
        ],
    ),
    "an endpoint without a scheme": (
        "tracing: {endpoint: 127.0.0.1:4318}\n",
        [
            (
                "F: tracing.endpoint: expected a URL such as http://127.0.0.1:4318/v1/traces, "
                "without a user or password"
            )
        ],
    ),
    "an endpoint with a password": (
        "tracing: {endpoint: 'https://me:hunter2@collector/v1/traces'}\n",
        [
            (
                "F: tracing.endpoint: expected a URL such as http://127.0.0.1:4318/v1/traces, "
                "without a user or password"
            )
        ],
    ),
    "no endpoint": (
        "tracing: {serviceName: a}\n",
        ["F: tracing: Object missing required field endpoint"],
    ),
}
"""Content → its errors."""


_CHECK, _SERVE = ("check-config",), ("serve", "--embedded", "demo", "--config")


class Refused:
    """Both commands with one configuration; each must exit with 2 and print the same."""

    def __init__(
        self, folder: Path, command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._run = command_line
        self._capsys = capsys

    def lines(self, path: Path) -> list[str]:
        """Return the lines with F, P and D for the files, without numbers of lines."""
        return [re.sub(r"\b([FP]):\d+:", r"\1:", line) for line in self.numbered_lines(path)]

    def numbered_lines(self, path: Path) -> list[str]:
        found = []
        for codes, command in (((1, 2), _CHECK), ((2,), _SERVE)):
            assert self._run(*command, str(path)) in codes
            out, err = self._capsys.readouterr()
            assert out == ""
            found.append(self._short(err, path))
        assert found[0] == found[1]
        assert all(line.startswith("reprieve: ") for line in found[0])
        return [line.removeprefix("reprieve: ") for line in found[0]]

    def _short(self, text: str, path: Path) -> list[str]:
        named = text.replace(str(path), "F").replace(str(self.folder / "policy.yaml"), "P")
        return named.replace(str(self.folder), "D").splitlines()


@pytest.fixture
def refused(
    tmp_path: Path, command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> Refused:
    return Refused(tmp_path, command_line, capsys)


@pytest.mark.parametrize(("content", "problem"), NOT_READ.values(), ids=NOT_READ)
def test_an_invalid_configuration_gives_one_line(
    refused: Refused, content: bytes, problem: str
) -> None:
    path = refused.folder / "reprieve.yaml"
    path.write_bytes(content)
    [line] = refused.lines(path)
    assert line.startswith(f"F: {problem}")


def test_an_unreadable_file_gives_one_line(refused: Refused) -> None:
    for path, problem in (
        (refused.folder / "none.yaml", "No such file or directory"),
        (refused.folder, "Is a directory"),
    ):
        assert refused.lines(path) == [f"F: cannot be read: {problem}"]


@pytest.mark.parametrize(("content", "errors"), ERRORS.values(), ids=ERRORS)
def test_each_error_has_its_line(refused: Refused, content: str, errors: list[str]) -> None:
    path, policy = refused.folder / "reprieve.yaml", refused.folder / "policy.yaml"
    policy.write_text(POLICY)
    named = {"D": refused.folder, "F": path, "P": policy}
    given = re.sub(r" ([DFP])(?=[/\n])", lambda found: f" {named[found[1]]}", content)
    path.write_text(given)
    assert sorted(refused.lines(path)) == sorted(errors)


def test_an_error_has_the_line_of_its_field(refused: Refused) -> None:
    path, policy = refused.folder / "reprieve.yaml", refused.folder / "policy.yaml"
    policy.write_text(POLICY)
    path.write_text(
        "# all\nport: 1\nlimits:\n  connections: 1\n  headerKB: 5\n"
        f"upstream: '1.2'\npathPrefixes:\n- /a\n- /a\ntls: {{}}\npolicy: {policy}\nport: x\n"
    )
    starts = [
        "F:5: limits: Object contains unknown field headerKB",
        "F:10: tls: Object missing required field certificate",
        "F:12: port: written in lines 2 and 12",
        "F:12: port: Expected int",
        "F:6: upstream: unknown Kubernetes release",
        "F:11: policy: P:7: rules[0].guards.protect[0]: Object contains",
        "F:11: policy: P:8: rules[0].victims[0]: unknown criterion",
        "F:9: pathPrefixes[1]: '/a' is served already",
    ]
    lines = refused.numbered_lines(path)
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts


def object_paths(kind: inspect.Type, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the path of every object of the configuration that has fields of its own."""
    match kind:
        case inspect.StructType(fields=fields):
            yield place
            for field in fields:
                yield from object_paths(field.type, (*place, field.encode_name))
        case inspect.Metadata(type=inner):
            yield from object_paths(inner, place)
        case inspect.UnionType(types=types):
            for member in types:
                yield from object_paths(member, place)


@pytest.mark.parametrize(
    "place", sorted(set(object_paths(inspect.type_info(Config)))), ids=lambda place: ".".join(place)
)
def test_an_unknown_key_is_refused_in_every_object(
    refused: Refused, place: tuple[str, ...]
) -> None:
    path = refused.folder / "reprieve.yaml"
    document: object = {"xyz": 1}
    for step in reversed(place):
        document = {step: document}
    path.write_bytes(msgspec.json.encode({"queueLimit": 1, **document}))  # type: ignore[dict-item]
    line = refused.lines(path)[0]
    where = ".".join(place) or "(the document)"
    assert line.startswith(f"F: {where}: Object contains unknown field xyz; expected one of ")
