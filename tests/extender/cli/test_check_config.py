"""The exit codes of ``reprieve check-config``."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.cli.config_validation import InvalidConfigError, load_serving_config
from extender.config.access_token import VARIABLE
from extender.kube.rest.clock import SystemClock
from tests.commands import reprieve


@pytest.mark.parametrize(("content", "code"), [("port: many", 1), ("port: [", 2), (None, 2)])
async def test_the_exit_code_tells_invalid_files_from_unreadable_ones(
    tmp_path: Path, content: str | None, code: int
) -> None:
    path = tmp_path / "reprieve.yaml"
    if content is not None:
        path.write_text(content)
    assert (await reprieve("check-config", str(path))).code == code


async def test_an_error_is_one_line_whatever_it_quotes(tmp_path: Path) -> None:
    path = tmp_path / "reprieve.json"
    path.write_text(r'{"port": 1, "degraded": {"late": {"a\n\u2028b": 1}}}')
    done = await reprieve("check-config", str(path))
    assert (done.code, len(done.err.splitlines())) == (1, 1)


TOKEN = "0123456789abcdef"
NEEDS_TOKEN = f"F:2: page: needs a token; expected page.tokenFile, or ${VARIABLE}"
SHORT = "expected a token of at least 16 characters without spaces"
LEDGER = "ledger: {location: ledger.db}\n"

PAGES: dict[str, tuple[str, list[str]]] = {
    "valid": (f"{LEDGER}page: {{tokenFile: token}}\n", []),
    "no ledger": (
        "page: {tokenFile: token}\n",
        ["F:1: page: shows the ledger; expected ledger as well"],
    ),
    "no token": (f"{LEDGER}page: {{}}\n", [NEEDS_TOKEN]),
    "a short token": (
        f"{LEDGER}page: {{tokenFile: short}}\n",
        [f"F:2: page.tokenFile: D/short: {SHORT}"],
    ),
    "a token with a space": (
        f"{LEDGER}page: {{tokenFile: spaced}}\n",
        [f"F:2: page.tokenFile: D/spaced: {SHORT}"],
    ),
    "a token that is not text": (
        f"{LEDGER}page: {{tokenFile: binary}}\n",
        ["F:2: page.tokenFile: D/binary: expected a token of ASCII characters"],
    ),
    "no token file": (
        f"{LEDGER}page: {{tokenFile: none}}\n",
        ["F:2: page.tokenFile: D/none: No such file or directory"],
    ),
    "plain HTTP beyond loopback": (
        f"{LEDGER}page: {{tokenFile: token, host: 10.0.0.1}}\n",
        [
            (
                "F:2: page.host: 10.0.0.1 is no loopback address, and there is no tls; "
                "expected tls, a loopback address, or allowPlainHTTP: true"
            )
        ],
    ),
    "plain HTTP that is allowed": (
        f"{LEDGER}page: {{tokenFile: token, host: 10.0.0.1}}\nallowPlainHTTP: true\n",
        [],
    ),
    "no host": (
        f"{LEDGER}page: {{tokenFile: token, host: a..b}}\nallowPlainHTTP: true\n",
        ["F:2: page.host: 'a..b' is not a valid host; expected an address or a name"],
    ),
    "the port of the extender": (
        f"{LEDGER}page: {{tokenFile: token, port: 8888}}\n",
        ["F:2: page.port: 8888 is the port of the extender; expected another"],
    ),
    "any free ports": (f"port: 0\n{LEDGER}page: {{tokenFile: token, port: 0}}\n", []),
    "no time to keep": (
        "ledger: {location: a.db, keepDays: 0}\n",
        ["F:1: ledger.keepDays: Expected float > 0.0"],
    ),
    "no size": (
        "ledger: {location: a.db, maxMiB: 0}\n",
        ["F:1: ledger.maxMiB: Expected int >= 1"],
    ),
    "no location": (
        "ledger: {keepDays: 1}\n",
        ["F:1: ledger: Object missing required field location"],
    ),
    "an unknown verb": (
        "ledger: {location: a.db, verbs: [bind]}\n",
        ["F:1: ledger.verbs[0]: Invalid enum value 'bind'; expected one of filter, preempt"],
    ),
}
"""Configurations with the beginnings of their errors; F is the file, D its folder."""


@pytest.mark.parametrize(("content", "errors"), PAGES.values(), ids=PAGES)
def test_errors_of_a_ledger_and_its_page(
    content: str, errors: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    files = {"token": TOKEN, "short": TOKEN[1:], "spaced": f"{TOKEN} {TOKEN}", "binary": "é" * 16}
    for name, token in files.items():
        (tmp_path / name).write_text(f"{token}\n", encoding="utf-8")
    path = tmp_path / "reprieve.yaml"
    path.write_text(content)
    assert load_errors(path) == errors


def test_the_token_may_be_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reprieve.yaml"
    path.write_text(f"{LEDGER}page: {{}}\n")
    monkeypatch.setenv(VARIABLE, TOKEN)
    assert load_errors(path) == []
    monkeypatch.setenv(VARIABLE, TOKEN[1:])
    assert load_errors(path) == [f"F:2: page.tokenFile: ${VARIABLE}: {SHORT}"]


POLICY = """apiVersion: reprieve.dev/v1alpha1
kind: PreemptionPolicy
metadata: {name: own}
rules: [{name: all}]
"""
UNKNOWN = "no such file or built-in policy (kube-scheduler)"
DISTINCT = "expected policies of different names"
SHADOWS: dict[str, tuple[str, list[str]]] = {
    "valid": ("mode: observe\npolicy: own.yaml\nshadow: [kube-scheduler]\n", []),
    "the live policy": ("policy: own.yaml\nshadow: [own.yaml, kube-scheduler]\n", []),
    "an unknown mode": (
        "mode: watch\n",
        ["F:1: mode: Invalid enum value 'watch'; expected one of enforce, observe"],
    ),
    "an unknown policy": (
        "shadow: [kube-scheduler, other]\n",
        [f"F:1: shadow[1]: policy 'D/other': {UNKNOWN}"],
    ),
    "an invalid policy": (
        "shadow: [broken.yaml]\n",
        ["F:1: shadow[0]: D/broken.yaml:4: rules: Expected array of length >= 1"],
    ),
    "one name twice": (
        "shadow: [own.yaml, kube-scheduler, same.yaml]\n",
        [f"F:1: shadow[2]: 'own' is the name in shadow[0] as well; {DISTINCT}"],
    ),
    "the name of the observed policy": (
        "mode: observe\nshadow: [kube-scheduler]\n",
        [f"F:2: shadow[0]: 'kube-scheduler' is the name in policy as well; {DISTINCT}"],
    ),
    "too many": (
        "shadow: [a, b, c, d, e]\n",
        ["F:1: shadow: Expected array of length <= 4"],
    ),
    "no share": (
        "shadowCPUShare: 0\n",
        ["F:1: shadowCPUShare: Expected float > 0.0"],
    ),
    "more than a core": (
        "shadowCPUShare: 1.5\n",
        ["F:1: shadowCPUShare: Expected float <= 1.0"],
    ),
}


@pytest.mark.parametrize(("content", "errors"), SHADOWS.values(), ids=SHADOWS)
def test_errors_of_shadow_policies(content: str, errors: list[str], tmp_path: Path) -> None:
    files = {"own": POLICY, "same": POLICY, "broken": POLICY.replace("[{name: all}]", "[]")}
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    path = tmp_path / "reprieve.yaml"
    path.write_text(content)
    assert load_errors(path) == errors


def load_errors(path: Path) -> list[str]:
    """Return the errors of a configuration file."""
    try:
        load_serving_config(path, {}, SystemClock())
    except InvalidConfigError as error:
        return [
            line.replace(str(path), "F").replace(str(path.parent), "D") for line in error.errors
        ]
    return []
