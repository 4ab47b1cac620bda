"""The log subresource: the log of a container, from the kubelet of the pod's node.

    container named, and in the pod       that one, also an init or an ephemeral container
    none named, the pod has one           that one
    otherwise                             400
    the pod has no node                   204 without content
    the node's kubelet does not listen    500: connection refused

With ``follow=true`` the response ends with the present end of the log.

Sources: LogLocation in pkg/registry/core/pod/strategy.go, pkg/registry/core/pod/rest/log.go,
k8s.io/apiserver/pkg/registry/generic/rest/response_checker.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlencode

from extender.kube.decoders.object_meta import format_time, parse_time
from fakeapi.apiserver.kinds.builtin import NODES
from fakeapi.apiserver.registry.generic_registry import Target
from fakeapi.apiserver.registry.request_scope import RequestScope
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import (
    Cause,
    StatusError,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
)
from fakeapi.apiserver.wire.http_messages import Response
from fakeapi.apiserver.wire.request_options import parse_integer, read_flag

_CONTENT_TYPE: Final = "text/plain"
_FLAGS: Final = ("follow", "previous", "timestamps")
_INTEGERS: Final = ("limitBytes", "sinceSeconds", "tailLines")
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_BOTH_SINCE: Final = "at most one of `sinceTime` or `sinceSeconds` may be specified"


def get_log(call: RequestScope) -> Response:
    """Return the log of a container of the pod of the request path."""
    options = _kubelet_options(call.request.query, call.target.name)
    pod = call.registry.get(call.target).document()
    container = _container_name(call.request.query.get("container", ""), pod)
    node = pod["spec"].get("nodeName")
    if not node:
        return Response(204, b"", _CONTENT_TYPE)
    call.registry.get(Target(NODES, name=node))
    path = f"containerLogs/{call.target.namespace}/{call.target.name}/{container}"
    answer = call.services.ask_kubelet(node, path, options)
    if answer is None:
        raise _connection_refused(node, path, options)
    if answer.status != 200:
        raise _kubelet_error(call.target, answer)
    return Response(200, answer.body, _CONTENT_TYPE)


def _kubelet_options(query: Mapping[str, str], name: str) -> Mapping[str, str]:
    """Return the options to send to the kubelet; raise StatusError (400, 422)."""
    numbers = {key: parse_integer(query[key]) for key in _INTEGERS if key in query}
    options = {key: "true" for key in _FLAGS if read_flag(query, key)}
    options |= {key: str(number) for key, number in numbers.items()}
    if "sinceTime" in query:
        options["sinceTime"] = _whole_seconds(query["sinceTime"])
    causes = [*_option_errors(numbers, options)]
    if "stream" in query:
        causes.append(forbidden_field("stream", "may not be specified"))
    if causes:
        raise invalid("PodLogOptions", name, causes)
    return options


def _option_errors(numbers: Mapping[str, int], options: Mapping[str, str]) -> Iterator[Cause]:
    tail, limit = numbers.get("tailLines", 0), numbers.get("limitBytes", 1)
    seconds = numbers.get("sinceSeconds", 1)
    if tail < 0:
        yield invalid_value("tailLines", tail, "must be greater than or equal to 0")
    if limit < 1:
        yield invalid_value("limitBytes", limit, "must be greater than 0")
    if "sinceSeconds" in options and "sinceTime" in options:
        yield forbidden_field("", _BOTH_SINCE)
    elif seconds < 1:
        yield invalid_value("sinceSeconds", seconds, "must be greater than 0")


def _whole_seconds(text: str) -> str:
    """Return a time as metav1.Time; raise StatusError (400)."""
    time = parse_time(text)
    if not time:
        layout = "2006-01-02T15:04:05Z07:00"
        raise bad_request(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')
    return format_time(time)


def _container_name(named: str, pod: Document) -> str:
    """Return the name of the container; raise StatusError (400)."""
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    names = tuple(each["name"] for key in _LISTS for each in spec.get(key) or ())
    if named:
        if named not in names:
            raise bad_request(f"container {named} is not valid for pod {pod_name}")
        return named
    containers: list[Document] = spec.get("containers") or []
    if len(containers) == 1:
        only: str = containers[0]["name"]
        return only
    listed = " ".join(names)
    choice = f", choose one of: [{listed}]" if containers else ""
    raise bad_request(f"a container name must be specified for pod {pod_name}{choice}")


def _connection_refused(node: str, path: str, options: Mapping[str, str]) -> StatusError:
    query = f"?{urlencode(sorted(options.items()))}" if options else ""
    url, reason = f"https://{node}:10250/{path}{query}", "connect: connection refused"
    return StatusError(500, "", f'Get "{url}": dial tcp {node}:10250: {reason}')


def _kubelet_error(pod: Target, answer: Response) -> StatusError:
    """Return the error of a kubelet: a 400 with its text, or a 404 without it."""
    if answer.status == 400:
        return bad_request(answer.body.decode())
    message = f"the server could not find the requested resource ( pods/log {pod.name})"
    return StatusError(404, "NotFound", message, {"name": pod.name, "kind": "pods/log"})
