"""Requests for a version that is not stored: converted to the stored version, and back.

    POST events.k8s.io/v1 {note}  ->  create v1 {message}  ->  answer {note}

Bodies, patches and field selectors of requests are converted to the stored version. Objects, lists,
watch lines and the kinds in errors are converted to the served version. Field managers are recorded
in the stored version.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.objects.patch import JSON_PATCH, PATCH_TYPES
from fakeapi.apiserver.objects.version_conversion import VersionConversion, conversion_of
from fakeapi.apiserver.registry.generic_registry import Target
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.watch.watch_cursor import Watch
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import JSON, Request, Response
from fakeapi.apiserver.wire.request_bodies import media_type, read_json, read_object
from fakeapi.apiserver.wire.selectors import parse_selectors
from fakeapi.apiserver.wire.write_options import APPLY_PATCH
from fakeapi.apiserver.wire.yaml_decoder import read_yaml

ServeRequest = Callable[[Target, Request], "Response | Watch"]

_FIELD: Final = re.compile(r"(?<![^,])(?<!\\,)\s*(\w+)")


def serve_converted(
    kinds: ResourceRegistry, target: Target, request: Request, serve: ServeRequest
) -> Response | Watch:
    """Serve a request in the version of its path; raise StatusError."""
    conversion = conversion_of(target.kind)
    stored = conversion.stored_kind(kinds) if conversion is not None else None
    if conversion is None or stored is None:
        return serve(target, request)
    forms = AlternateVersion(conversion, target.kind, stored)
    try:
        answer = serve(replace(target, kind=stored), forms.request(request))
    except StatusError as error:
        raise forms.served_error(error) from None
    if isinstance(answer, Watch):
        answer.add_transform(forms.watch_line)
        return answer
    whole = answer.joined
    return replace(whole, body=forms.body(whole.body))


@dataclass(frozen=True, slots=True)
class AlternateVersion:
    """The served and the stored version of one kind."""

    conversion: VersionConversion
    served: ResourceInfo
    stored: ResourceInfo

    def request(self, request: Request) -> Request:
        """Return the request in the stored version; raise StatusError (400)."""
        if "fieldSelector" in request.query:
            request = replace(request, query=self._query(request))
        if request.method in ("POST", "PUT"):
            document = self._to_stored(read_object(request, self.served.kind))
            return replace(request, body=orjson.dumps(document), content_type=JSON)
        if request.method == "PATCH":
            return replace(request, body=self._patch(request))
        return request

    def body(self, body: bytes) -> bytes:
        """Return the document of a response in the served version."""
        document = orjson.loads(body)
        return orjson.dumps(self._to_served(document)) + b"\n"

    def watch_line(self, line: bytes) -> bytes:
        """Return a line of a watch in the served version."""
        event = orjson.loads(line)
        event["object"] = self._to_served(event["object"])
        return orjson.dumps(event) + b"\n"

    def served_error(self, error: StatusError) -> StatusError:
        """Return an error that names the served kind."""
        details = dict(error.details or {})
        if details.get("group", "") == self.stored.group and details.get("kind"):
            details = {**details, "group": self.served.group}
            order = ("name", "group", "kind")
            details = {name: details.pop(name, "") for name in order} | details
        for stored, served in (
            (f'{self.stored.resource} "', f'{self.served.resource} "'),
            (f'{self.stored.qualified_kind} "', f'{self.served.qualified_kind} "'),
        ):
            if error.message.startswith(stored):
                error.message = served + error.message.removeprefix(stored)
        error.details = None if error.details is None else details
        return error

    def _query(self, request: Request) -> dict[str, str]:
        """Rename the fields of a selector, after checking that the served version has them."""
        selector = request.query["fieldSelector"]
        parse_selectors(self.served, "", selector)
        names = self.conversion.names
        renamed = _FIELD.sub(lambda match: names.get(match[1], match[1]), selector)
        return {**request.query, "fieldSelector": renamed}

    def _to_stored(self, document: Document) -> Document:
        stored = self.conversion.to_stored(document)
        header = {"kind": self.stored.kind, "apiVersion": self.stored.api_version}
        return {**stored, **{name: header[name] for name in header if name in document}}

    def _to_served(self, document: Document) -> Document:
        if document.get("kind") == self.stored.kind:
            header = {"kind": self.served.kind, "apiVersion": self.served.api_version}
            return {**header, **self.conversion.to_served({**document, **header})}
        if document.get("kind") == self.stored.list_kind:
            items = [self.conversion.to_served(item) for item in document["items"]]
            return {**document, "apiVersion": self.served.api_version, "items": items}
        return document

    def _patch(self, request: Request) -> bytes:
        """Return a patch in the stored version; an invalid patch is rejected by later stages."""
        patch_type = media_type(request.content_type)
        if patch_type not in (*PATCH_TYPES, APPLY_PATCH):
            return request.body
        reads = read_yaml if patch_type == APPLY_PATCH else read_json
        patch = reads(request.body)
        if patch_type == JSON_PATCH and isinstance(patch, list):
            return orjson.dumps([self._operation(operation) for operation in patch])
        return orjson.dumps(self._to_stored(patch)) if isinstance(patch, dict) else request.body

    def _operation(self, operation: Any) -> Any:
        if not isinstance(operation, dict):
            return operation
        paths = {
            name: self._pointer(operation[name]) for name in ("path", "from") if name in operation
        }
        return {**operation, **paths}

    def _pointer(self, pointer: Any) -> Any:
        if not isinstance(pointer, str):
            return pointer
        root, *steps = pointer.split("/")
        names = self.conversion.names
        return "/".join([root, *(names.get(step, step) for step in steps[:1]), *steps[1:]])
