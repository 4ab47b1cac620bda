"""Selectors of the query string."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import StatusError
from fakeapi.apiserver.kinds.builtin import PODS
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.wire.selectors import parse_label_selector, parse_selectors

LABELS = {"app": "web", "env": "prod", "size": "5", "empty": "", "example.com/gpu": "a100"}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        (" app = web , env = prod ", True),
        ("app!=web", False),
        ("other!=web", True),
        ("app in (web, db)", True),
        ("app in (db)", False),
        ("app notin (db),env", True),
        ("other notin (db)", True),
        ("app", True),
        ("!app", False),
        ("!other", True),
        ("empty=", True),
        ("empty in (,a)", True),
        ("other=", False),
        ("size>4", True),
        ("size<5", False),
        ("app>4", False),
        ("example.com/gpu=a100", True),
    ],
)
def test_label_selector(selector: str, *, matches: bool) -> None:
    assert parse_label_selector(selector).matches(LABELS) is matches


@pytest.mark.parametrize(
    "selector",
    [
        "=a",
        "a b",
        "a in",
        "a in (",
        "a in (b",
        "a,",
        ",a",
        "a=b=c",
        "a in b",
        "!",
        "a!b",
        "a>b",
        "-=b",
    ],
)
def test_an_invalid_label_selector_is_refused(selector: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_label_selector(selector)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")


def pod() -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "x", "labels": {"app": "web"}},
        "spec": {"nodeName": "n,1"},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("metadata.name=p", True),
        ("metadata.namespace==x", True),
        ("metadata.name!=p", False),
        (r"spec.nodeName=n\,1", True),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.phase=Running,metadata.name=q", False),
        ("spec.nodeName=", False),
        ("status.nominatedNodeName=", True),
        ("spec.hostNetwork=false", True),
    ],
)
def test_field_selector(selector: str, *, matches: bool) -> None:
    entry = Store().create(PODS, "x/p", pod())
    assert parse_selectors(PODS, "", selector).matches(entry) is matches
    assert parse_selectors(PODS, "app=db", selector).matches(entry) is False


def test_an_unknown_field_is_refused_in_upstreams_words() -> None:
    with pytest.raises(StatusError) as refused:
        parse_selectors(PODS, "a=b", "spec.nope=1")
    assert refused.value.message == "field label not supported: spec.nope"


def test_a_field_term_without_an_operator_is_refused() -> None:
    with pytest.raises(StatusError, match="can't understand 'nonsense'"):
        parse_selectors(PODS, "", "nonsense")
