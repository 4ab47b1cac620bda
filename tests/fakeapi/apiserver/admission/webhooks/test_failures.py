"""Webhooks that refuse, warn, or fail: the client's answer, in upstream's words."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.apiserver.webhooks.calls import InvalidReviewError, WebhookCallError
from fakeapi.simulation.world import create_api
from tests.fakeapi.admission_webhooks import (
    Hook,
    Review,
    add,
    answered,
    answering,
    configuration,
    patching,
    webhook,
)
from tests.fakeapi.api_requests import MAPS, Ask, named, send
from tests.fakeapi.apiserver.admission.conftest import Configure

ROLES = pytest.mark.parametrize("role", ["mutating", "validating"])
MAP = {"metadata": {"name": "m"}}
NAME = "validating.example.com"
FAILED = f'failed calling webhook "{NAME}": '
POST = 'failed to call webhook: Post "https://hooks.example.com/review?timeout=10s": '
UNMARSHAL = "json: cannot unmarshal "
LIST: Any = []
INVALID = "received invalid webhook response: "


def responding(**response: Any) -> Hook:
    """Return a hook whose response has these members and no others."""
    return lambda review: {**answered(review), "response": response}


def failing(error: Exception) -> Hook:
    def hook(_review: Review) -> Review:
        raise error

    return hook


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        (None, 400, None, "without explanation"),
        ({}, 400, None, "without explanation"),
        ({"message": "too loud"}, 400, None, ": too loud"),
        ({"reason": "Loud"}, 400, "Loud", ": Loud"),
        (
            {"message": "too loud", "reason": "Forbidden", "code": 403},
            403,
            "Forbidden",
            ": too loud",
        ),
        ({"message": "fine", "code": 200, "status": "Success"}, 400, None, ": fine"),
        ({"code": 429}, 429, None, "without explanation"),
        ({"code": 99999}, 400, None, "without explanation"),
    ],
)
@ROLES
def test_denials_have_the_webhooks_code_and_reason(
    ask: Ask,
    configure: Configure,
    role: str,
    status: Any,
    code: int,
    reason: str | None,
    message: str,
) -> None:
    configure(role, name=NAME, answer=answering(allowed=False, status=status))
    found, refusal = ask("POST", MAPS, MAP)
    assert (found, refusal["code"], refusal.get("reason")) == (code, code, reason)
    denied = f'admission webhook "{NAME}" denied the request'
    separator = "" if message.startswith(":") else " "
    assert refusal["message"] == f"{denied}{separator}{message}"


def test_details_of_a_denial_are_returned(ask: Ask, configure: Configure) -> None:
    details = {"name": "m", "causes": [{"field": "data", "message": "empty"}]}
    configure("validating", answer=answering(allowed=False, status={"details": details}))
    assert ask("POST", MAPS, MAP)[1]["details"] == details


def test_a_denial_stores_nothing_despite_the_failure_policy(
    ask: Ask, configure: Configure, api: Api
) -> None:
    configure("validating", failurePolicy="Ignore", answer=answering(allowed=False))
    before = api.store.version
    assert ask("POST", MAPS, MAP)[0] == 400
    assert api.store.version == before


def test_of_several_denials_the_first_in_order_is_reported(ask: Ask, configure: Configure) -> None:
    others = [
        configure("validating", name=f"{name}.b.c", answer=answering(allowed=False))
        for name in "zya"
    ]
    assert ask("POST", MAPS, MAP)[1]["message"].startswith('admission webhook "a.b.c" denied')
    assert all(other.requests for other in others)


def test_after_a_mutating_webhook_denies_no_other_is_called(ask: Ask, configure: Configure) -> None:
    configure("mutating", name="a.b.c", answer=answering(allowed=False))
    later = [configure("mutating", name="b.b.c"), configure("validating")]
    ask("POST", MAPS, MAP)
    assert not any(recorder.requests for recorder in later)


def test_warnings_are_returned_once(api: Api, configure: Configure) -> None:
    configure("mutating", answer=answering(warnings=["one", "two"]))
    configure("validating", answer=answering(warnings=["two", "three"]))
    assert send(api, "POST", MAPS, MAP).warnings == ("one", "two", "three")


def test_warnings_follow_those_of_unknown_fields(api: Api, configure: Configure) -> None:
    configure("validating", answer=answering(warnings=["one"]))
    assert send(api, "POST", MAPS, {**MAP, "colour": "red"}).warnings == (
        'unknown field "colour"',
        "one",
    )


@pytest.mark.parametrize(
    ("given", "lengths"),
    [([4_096], [4_096]), ([3_000, 3_000], [256, 256]), ([300] * 20, [256] * 16)],
)
def test_many_and_long_warnings_are_cut(
    api: Api, configure: Configure, given: list[int], lengths: list[int]
) -> None:
    texts = [f"{number:02}".ljust(length, "!") for number, length in enumerate(given)]
    configure("validating", answer=answering(warnings=texts))
    assert list(map(len, send(api, "POST", MAPS, MAP).warnings)) == lengths


def test_a_denial_has_warnings_too(api: Api, configure: Configure) -> None:
    configure("validating", answer=answering(allowed=False, warnings=["one"]))
    answer = send(api, "POST", MAPS, MAP)
    assert (answer.status, answer.warnings) == (400, ("one",))


FAILURES: dict[str, tuple[Hook, str]] = {
    "a refused connection": (
        failing(WebhookCallError("dial tcp 10.0.0.1:443: connect: connection refused")),
        f"{POST}dial tcp 10.0.0.1:443: connect: connection refused",
    ),
    "no such path": (
        failing(InvalidReviewError("the server could not find the requested resource")),
        "failed to call webhook: the server could not find the requested resource",
    ),
    "no response": (lambda review: {**answered(review), "response": None}, "response was absent"),
    "no object": (
        lambda _review: LIST,
        (
            "failed to call webhook: couldn't get version/kind; json parse error: json: cannot "
            "unmarshal array into Go value of type struct"
        ),
    ),
    "another uid": (
        lambda review: answered(review, uid="other"),
        'expected response.uid="<uid>", got "other"',
    ),
    "no uid": (responding(allowed=True), 'expected response.uid="<uid>", got ""'),
    "another version": (
        lambda review: answered(review) | {"apiVersion": "admission.k8s.io/v2"},
        (
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
            "admission.k8s.io/v2, Kind=AdmissionReview"
        ),
    ),
    "no header": (
        lambda review: {"response": answered(review)["response"]},
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
    ),
    "a word for a flag": (
        answering(allowed="yes"),
        f"{UNMARSHAL}string into Go struct field AdmissionResponse.response.allowed of type bool",
    ),
    "a word for a code": (
        answering(status={"code": "403"}),
        f"{UNMARSHAL}string into Go struct field Status.response.status.code of type int32",
    ),
    "a word for warnings": (
        answering(warnings="loud"),
        (
            f"{UNMARSHAL}string into Go struct field AdmissionResponse.response.warnings of "
            "type []string"
        ),
    ),
    "a number among warnings": (
        answering(warnings=[1]),
        (
            f"{UNMARSHAL}number into Go struct field AdmissionResponse.response.warnings of "
            "type string"
        ),
    ),
    "a list for a response": (
        lambda review: {**answered(review), "response": []},
        "json: cannot unmarshal array into Go struct field AdmissionReview.response",
    ),
}
MUTATING: dict[str, tuple[Hook, str]] = {
    "a patch without its type": (
        answering(patch=patching(add("/data", {}))["patch"]),
        f"{INVALID}webhook returned response.patch but not response.patchType",
    ),
    "a type without its patch": (
        answering(patchType="JSONPatch"),
        f"{INVALID}webhook returned response.patchType but not response.patch",
    ),
    "an empty type": (
        answering(**patching(add("/data", {})) | {"patchType": ""}),
        f'{INVALID}webhook returned invalid response.patchType of ""',
    ),
    "another type": (
        answering(**patching(add("/data", {})) | {"patchType": "MergePatch"}),
        'unsupported patch type "MergePatch"',
    ),
    "a patch that is no base64": (
        answering(patch="§", patchType="JSONPatch"),
        "failed to call webhook: illegal base64 data",
    ),
    "a patch that is no JSON": (
        answering(patch="eHg=", patchType="JSONPatch"),
        "received undecodable patch in webhook response: ",
    ),
    "a patch that is no list": (
        answering(patch="e30=", patchType="JSONPatch"),
        "received undecodable patch in webhook response: ",
    ),
}
VALIDATING: dict[str, tuple[Hook, str]] = {
    "a patch": (
        answering(**patching(add("/data", {}))),
        f"{INVALID}validating webhook may not return response.patch",
    ),
    "a patch's type": (
        answering(patchType="JSONPatch"),
        f"{INVALID}validating webhook may not return response.patchType",
    ),
}
CASES = {
    f"{role}: {name}": (role, *failure)
    for role, own in (("mutating", MUTATING), ("validating", VALIDATING))
    for name, failure in (FAILURES | own).items()
}


FAILING = pytest.mark.parametrize(("role", "hook", "message"), CASES.values(), ids=CASES)


@FAILING
def test_a_failure_fails_the_request(
    ask: Ask, configure: Configure, role: str, hook: Hook, message: str
) -> None:
    recorder = configure(role, name=NAME, answer=hook)
    status, refusal = ask("POST", MAPS, MAP)
    assert (status, refusal["reason"]) == (500, "InternalError")
    assert refusal["message"].startswith(f"Internal error occurred: {FAILED}")
    [seen] = recorder.seen("uid")
    assert message.replace("<uid>", seen) in refusal["message"]
    [cause] = refusal["details"]["causes"]
    assert f"Internal error occurred: {cause['message']}" == refusal["message"]


@FAILING
def test_failures_are_ignored_by_failure_policy(
    ask: Ask, configure: Configure, role: str, hook: Hook, message: str
) -> None:
    configure(role, name=NAME, answer=hook, failurePolicy="Ignore")
    assert ask("POST", MAPS, MAP)[0] == 201, message


def test_a_webhook_that_knows_no_known_version_fails(ask: Ask, configure: Configure) -> None:
    configure("validating", admissionReviewVersions=["v7"])
    assert ask("POST", MAPS, MAP)[1]["message"] == (
        f"Internal error occurred: {FAILED}could not create admission objects: webhook does not "
        "accept known AdmissionReview versions (v1, v1beta1)"
    )


def test_a_webhook_without_an_address_fails(ask: Ask, configure: Configure) -> None:
    configure("validating", clientConfig={})
    message = "webhook configuration must have either service or URL"
    assert message in ask("POST", MAPS, MAP)[1]["message"]


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"url": "https://a.b"}, 'Post "https://a.b/?timeout=10s"'),
        ({"url": "https://a.b:8443/c/"}, 'Post "https://a.b:8443/c?timeout=10s"'),
        ({"url": "https://[a"}, 'Post "https://[a/?timeout=10s"'),
        ({"service": {"namespace": "n", "name": "s"}}, 'Post "https://s.n.svc:443/?timeout=10s"'),
        (
            {"service": {"namespace": "n", "name": "s", "port": 8443, "path": "/p/"}},
            'Post "https://s.n.svc:8443/p?timeout=10s"',
        ),
    ],
)
def test_the_failing_address_is_reported(
    ask: Ask, configure: Configure, config: dict[str, Any], named: str
) -> None:
    configure("validating", clientConfig=config, answer=failing(WebhookCallError("EOF")))
    assert named in ask("POST", MAPS, MAP)[1]["message"]


@ROLES
@pytest.mark.parametrize("effects", ["None", "NoneOnDryRun"])
def test_dry_run_webhooks_are_called_with_dry_run_set(
    ask: Ask, configure: Configure, api: Api, role: str, effects: str
) -> None:
    recorder = configure(role, sideEffects=effects)
    before = api.store.version
    assert ask("POST", MAPS, MAP, dryRun="All")[0] == 201
    [(dry, options)] = recorder.seen("dryRun", "options")
    assert (dry, options["dryRun"]) == (True, ["All"])
    assert api.store.version == before


@ROLES
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_dry_runs_are_refused_by_webhooks_with_side_effects(
    ask: Ask, configure: Configure, role: str, policy: str
) -> None:
    name = f"{role}.example.com"
    recorder = configure(role, sideEffects="Some", failurePolicy=policy)
    status, refusal = ask("POST", MAPS, MAP, dryRun="All")
    assert (status, refusal["reason"]) == (400, "BadRequest")
    assert refusal["message"] == f'admission webhook "{name}" does not support dry run'
    assert not recorder.requests
    assert ask("POST", MAPS, MAP)[0] == 201


@ROLES
def test_a_delete_may_be_a_dry_run_by_its_body(ask: Ask, configure: Configure, role: str) -> None:
    ask("POST", MAPS, MAP)
    recorder = configure(role)
    assert ask("DELETE", f"{MAPS}/m", {"dryRun": ["All"]})[0] == 200
    assert recorder.seen("dryRun") == [True]
    assert ask("GET", f"{MAPS}/m")[0] == 200


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 500) | st.sampled_from(("", "e30=", "W10=", "uid")),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(("message", "code", "op", "path")), inner, max_size=3)
    ),
    max_leaves=5,
)
RESPONSES = st.dictionaries(
    st.sampled_from(("allowed", "status", "patch", "patchType", "warnings")), ANY_JSON
)


@given(response=RESPONSES | ANY_JSON, role=st.sampled_from(("mutating", "validating")))
def test_any_review_response_gives_a_status_that_agrees_with_its_body(
    response: Any, role: str
) -> None:
    api = create_api(VirtualClock(), Random(7), history=10)
    api.load([configuration(role, webhook(NAME))])

    def hook(review: Review) -> Review:
        uid = {"uid": review["request"]["uid"]}
        own = {**uid, **response} if isinstance(response, dict) else response
        return {**answered(review), "response": own}

    api.webhooks.handlers[NAME] = hook
    answer = send(api, "POST", MAPS, named("m"))
    assert orjson.loads(answer.body).get("code", answer.status) == answer.status
