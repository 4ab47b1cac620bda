"""The input of rules for a request, and reads from a watch cache that lags behind.

A watch cache may answer these requests from an older state (``resourceVersion`` of the request):

    list    0                                  any state
    list    N, NotOlderThan or no match        at least N; without a match only if there is no limit
    watch   0                                  any state, then what followed
    watch   N with sendInitialEvents           at least N, then what followed

All other requests are answered from the current state, or continue from their own version. An older
state is never older than the requested version, nor than the history. It is the state before the
newest events of the resource, so within one plan it never goes back.

Source: k8s.io/apiserver/pkg/storage/cacher/delegator; "Resource versions" in the API concepts.
"""

from __future__ import annotations

from dataclasses import replace

from fakeapi.api.authorizing import AuthorizationAttributes, authorization_attributes
from fakeapi.api.bodies import read_object
from fakeapi.api.errors import StatusError
from fakeapi.api.faulting.plans import RequestMatchInput
from fakeapi.api.messages import Request
from fakeapi.api.options import parse_version, read_flag
from fakeapi.kinds import ResourceRegistry
from fakeapi.store import Store

_NAMESPACES = ("", "namespaces")


def match_input_of(request: Request) -> RequestMatchInput:
    """Return the input of rules for a request."""
    asked = authorization_attributes(request, request.user)
    itself = (asked.group, asked.resource) == _NAMESPACES
    return RequestMatchInput(
        client=request.user_agent,
        verb=asked.verb,
        path=request.path,
        group=asked.group,
        resource=asked.resource,
        subresource=asked.subresource,
        namespace="" if itself else asked.namespace,
        name=asked.name,
        may_lag=_may_lag(request, asked),
    )


def with_created_name(match_input: RequestMatchInput, request: Request) -> RequestMatchInput:
    """Add the object name of a create request, which is only in its body."""
    if (
        match_input.verb != "create"
        or match_input.name
        or not (match_input.resource and request.body)
    ):
        return match_input
    try:
        metadata = read_object(request).get("metadata")
    except StatusError:
        return match_input
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return replace(match_input, name=name) if isinstance(name, str) else match_input


def version_behind(store: Store, kinds: ResourceRegistry, request: Request, behind: int) -> int:
    """Return the version before the ``behind`` newest events of a kind.

    It is at least the version that the client requests, and at least 1, since a request for version
    0 allows any version.
    """
    asked = authorization_attributes(request, request.user)
    kind = kinds.at(asked.group, asked.version, asked.resource)
    if kind is None:
        return store.version
    events = store.since(kind, store.floor(kind))
    version = events[-min(behind, len(events))].version - 1 if events else store.version
    return max(version, int(request.query["resourceVersion"]), 1)


def as_of(request: Request, version: int) -> Request:
    """Return a list request, changed to read the state at exactly one version."""
    query = {**request.query, "resourceVersion": str(version), "resourceVersionMatch": "Exact"}
    if request.query["resourceVersion"] == "0":
        query.pop("limit", None)  # a watch cache ignores the limit for version 0
    return replace(request, query=query)


def _may_lag(request: Request, asked: AuthorizationAttributes) -> bool:
    query = request.query
    try:
        version = parse_version(query.get("resourceVersion", ""))
    except StatusError:
        return False
    if not version or query.get("continue"):
        return False
    any_state = int(version) == 0
    if asked.verb == "watch":
        return any_state or bool(read_flag(query, "sendInitialEvents"))
    if asked.verb != "list":
        return False
    match = query.get("resourceVersionMatch", "")
    no_limit = query.get("limit", "") in ("", "0")
    return match == "NotOlderThan" or (not match and (any_state or no_limit))
