"""Addresses of webhooks: the URL of a client configuration, or its Service.

There is no network between pods here. A Service therefore resolves to its configured URL, or to the
first ready address of its EndpointSlices or Endpoints, or to its external name. The serving
certificate must in any case be for the Service (``name.namespace.svc``).

Source: k8s.io/apiserver/pkg/util/webhook/client.go, pkg/util/proxy/proxy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fakeapi.api.outcalls import WebhookCallError
from fakeapi.api.rehearsing import ObjectReader
from fakeapi.kinds import BUILTIN, ResourceInfo
from fakeapi.store import Document

Json = Mapping[str, Any]
ServiceUrls = Mapping[str, str]
"""URLs of services, by ``namespace/name``."""


@dataclass(frozen=True, slots=True)
class ResolvedAddress:
    """The ``url`` of a webhook and the ``host`` of its certificate ("": the host of the URL)."""

    url: str
    host: str = ""


def resolve_address(
    objects: ObjectReader, services: ServiceUrls, client_config: Json
) -> ResolvedAddress:
    """Return the address of a webhook's client configuration; raise WebhookCallError."""
    service = client_config.get("service")
    if service is None:
        return ResolvedAddress(_normalized_url(client_config["url"]))
    told = services.get(f"{service['namespace']}/{service['name']}")
    if told is not None:
        return ResolvedAddress(f"{told.rstrip('/')}{_path(service)}", _certificate_name(service))
    place = _service_endpoint(
        objects, service["namespace"], service["name"], service.get("port", 443)
    )
    return ResolvedAddress(f"https://{place}{_path(service)}", _certificate_name(service))


def display_url(client_config: Json) -> str:
    """Return the URL of a client configuration as error messages write it."""
    service = client_config.get("service")
    if service is None:
        return _normalized_url(client_config["url"])
    return f"https://{_certificate_name(service)}:{service.get('port', 443)}{_path(service)}"


def _certificate_name(service: Json) -> str:
    return f"{service['name']}.{service['namespace']}.svc"


def _path(service: Json) -> str:
    return _absolute_path(service.get("path") or "")


def _normalized_url(url: str) -> str:
    """Return a URL as Go's client writes it: with a path, and without a trailing slash."""
    scheme, _, rest = url.partition("://")
    place, _, path = rest.partition("/")
    return f"{scheme}://{place}{_absolute_path(path)}"


def _absolute_path(path: str) -> str:
    return f"/{path.strip('/')}"


def _service_endpoint(objects: ObjectReader, namespace: str, name: str, port: int) -> str:
    entry = objects.get(_kind("", "services"), f"{namespace}/{name}")
    if entry is None:
        raise WebhookCallError(f'service "{name}" not found')
    spec = entry.document().get("spec") or {}
    if spec.get("type") == "ExternalName":
        return f"{spec.get('externalName')}:{port}"
    wanted = next((p for p in spec.get("ports") or () if p.get("port") == port), None)
    if wanted is None:
        raise WebhookCallError(f'no service port {port} found for service "{name}"')
    for ip, target in _endpoints(objects, namespace, name, wanted.get("name") or ""):
        return f"[{ip}]:{target}" if ":" in ip else f"{ip}:{target}"
    raise WebhookCallError(f'no endpoints available for service "{name}"')


def _endpoints(
    objects: ObjectReader, namespace: str, name: str, port: str
) -> Iterator[tuple[str, int]]:
    for entry in objects.entries(_kind("discovery.k8s.io", "endpointslices"), namespace):
        if entry.labels.get("kubernetes.io/service-name") == name:
            yield from _slice_addresses(entry.document(), port)
    legacy = objects.get(_kind("", "endpoints"), f"{namespace}/{name}")
    for subset in (legacy.document().get("subsets") or ()) if legacy is not None else ():
        for target in _ports(subset, port):
            for address in subset.get("addresses") or ():
                yield address["ip"], target


def _slice_addresses(document: Document, port: str) -> Iterator[tuple[str, int]]:
    for target in _ports(document, port):
        for endpoint in document.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready", True):
                for address in endpoint.get("addresses") or ():
                    yield address, target


def _ports(holder: Json, name: str) -> list[int]:
    return [p["port"] for p in holder.get("ports") or () if (p.get("name") or "") == name]


def _kind(group: str, plural: str) -> ResourceInfo:
    found = BUILTIN.at(group, "v1", plural)
    assert found is not None, plural
    return found
