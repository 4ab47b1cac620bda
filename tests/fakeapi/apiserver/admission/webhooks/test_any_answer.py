"""Any response of a webhook gives the client a valid answer."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.simulation.world import create_api
from tests.fakeapi.admission_webhooks import Review, answered, configuration, webhook
from tests.fakeapi.api_requests import MAPS, NAME, named, send

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 500) | st.sampled_from(("", "e30=", "W10=", "uid")),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(("message", "code", "op", "path")), inner, max_size=3)
    ),
    max_leaves=5,
)
RESPONSES = st.dictionaries(
    st.sampled_from(("allowed", "status", "patch", "patchType", "warnings")), JSON
)


@given(response=RESPONSES | JSON, role=st.sampled_from(("mutating", "validating")))
def test_any_review_response_gives_a_status_that_agrees_with_its_body(
    response: Any, role: str
) -> None:
    api = create_api(VirtualClock(), Random(7), history=10)
    api.load([configuration(role, webhook(NAME))])

    def hook(review: Review) -> Review:
        given = (
            {"uid": review["request"]["uid"], **response}
            if isinstance(response, dict)
            else response
        )
        return {**answered(review), "response": given}

    api.webhooks.handlers[NAME] = hook
    answer = send(api, "POST", MAPS, named("m"))
    assert orjson.loads(answer.body).get("code", answer.status) == answer.status
