"""The node proxy: answers of nodes below ``/api/v1/nodes/NAME/proxy``.

A component that simulates kubelets registers a handler for GET requests. Without one, and for nodes
that it does not simulate, the path does not exist.

Source: pkg/registry/core/node/rest/proxy.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from fakeapi.apiserver.kinds.builtin import NODES
from fakeapi.apiserver.registry.request_scope import NodeProxyHandler
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.wire.errors import StatusError, not_found
from fakeapi.apiserver.wire.http_messages import Request, Response

_PATH: Final = re.compile(r"/api/v1/nodes/(?:https?:)?([^/:]+)(?::\d*)?/proxy(?:/(.*))?")
_REFUSED: Final = "error trying to reach service: dial tcp {}:10250: connect: connection refused"


class NodeProxy:
    """Forwards requests to the simulated kubelets of one server."""

    def __init__(self) -> None:
        self._handler: NodeProxyHandler | None = None

    def register(self, handler: NodeProxyHandler) -> Callable[[], None]:
        """Register the handler for simulated kubelets, until the returned function is called."""
        self._handler = handler

        def unregister() -> None:
            if self._handler is handler:
                self._handler = None

        return unregister

    def ask_kubelet(self, node: str, path: str, query: Mapping[str, str]) -> Response | None:
        """Return the answer of a node's kubelet; None if nothing listens at the node's port."""
        answer = None if self._handler is None else self._handler(node, path, query)
        return answer if answer is not None and answer.status else None

    def serve(self, request: Request, store: Store) -> Response | None:
        """Return the answer of a node; None if the request is not for one. Raise StatusError."""
        if self._handler is None or request.method != "GET" or "/proxy" not in request.path:
            return None
        matched = _PATH.fullmatch(request.path)
        if matched is None:
            return None
        name = matched[1]
        if store.get(NODES, name) is None:
            raise not_found(NODES, name)
        answer = self._handler(name, matched[2] or "", request.query)
        if answer is not None and not answer.status:
            raise StatusError(503, "ServiceUnavailable", _REFUSED.format(name))
        return answer
