"""Printers of networking kinds; long lists of addresses and ports are shortened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.printers.human_readable import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    RowPrinter,
    age,
    at,
    join_or_none,
    labels,
    name,
    number,
    objects,
    selector,
    shortened,
    text,
    texts,
)

Document = Mapping[str, Any]

_MAX_LISTED: Final = 3


def _service(document: Document, now: int) -> list[Cell]:
    ports = [_service_port(port) for port in objects(document, "spec", "ports")]
    return [
        name(document),
        text(document, "spec", "type"),
        next(iter(texts(document, "spec", "clusterIPs")), NONE),
        _external_ip(document),
        join_or_none(ports),
        age(document, now),
        labels(document, "spec", "selector"),
    ]


def _service_port(port: Document) -> str:
    node_port = number(port, "nodePort")
    middle = f":{node_port}" if node_port > 0 else ""
    return f"{number(port, 'port')}{middle}/{text(port, 'protocol')}"


def _external_ip(document: Document) -> str:
    kind = text(document, "spec", "type")
    external = texts(document, "spec", "externalIPs")
    if kind in ("ClusterIP", "NodePort"):
        return join_or_none(external)
    if kind == "LoadBalancer":
        return ",".join([*_balancers(document), *external]) or "<pending>"
    if kind == "ExternalName":
        return text(document, "spec", "externalName")
    return UNKNOWN


def _balancers(document: Document) -> list[str]:
    points = objects(document, "status", "loadBalancer", "ingress")
    found = {text(point, "ip") or text(point, "hostname") for point in points}
    return sorted(found - {""})


def _endpoints(document: Document, now: int) -> list[Cell]:
    addresses = [address for subset in objects(document, "subsets") for address in _subset(subset)]
    found = shortened(addresses, _MAX_LISTED, "") if objects(document, "subsets") else NONE
    return [name(document), found, age(document, now)]


def _subset(subset: Document) -> list[str]:
    addresses = [text(address, "ip") for address in objects(subset, "addresses")]
    ports = objects(subset, "ports")
    if not ports:
        return addresses
    hosts = [f"[{address}]" if ":" in address else address for address in addresses]
    return [f"{host}:{number(port, 'port')}" for port in ports for host in hosts]


def _endpoint_slice(document: Document, now: int) -> list[Cell]:
    ports = [_slice_port(port) for port in objects(document, "ports")]
    addresses = [
        address for point in objects(document, "endpoints") for address in texts(point, "addresses")
    ]
    return [
        name(document),
        text(document, "addressType"),
        shortened(ports, _MAX_LISTED, UNSET),
        shortened(addresses, _MAX_LISTED, UNSET),
        age(document, now),
    ]


def _slice_port(port: Document) -> str:
    if at(port, "port") is not None:
        return str(number(port, "port"))
    return "*" if at(port, "name") is None else text(port, "name")


def _ingress(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        text(document, "spec", "ingressClassName", absent=NONE),
        _hosts(document),
        ",".join(_balancers(document)),
        "80, 443" if objects(document, "spec", "tls") else "80",
        age(document, now),
    ]


def _hosts(document: Document) -> str:
    """Return the first three hosts of the rules, and the number of rules that follow."""
    rules = [text(rule, "host") for rule in objects(document, "spec", "rules")]
    listed: list[str] = []
    cut = False
    for host in rules:
        cut = cut or len(listed) == _MAX_LISTED
        if host and not cut:
            listed.append(host)
    if not listed:
        return "*"
    return ",".join(listed) + (f" + {len(rules) - _MAX_LISTED} more..." if cut else "")


def _ingress_class(document: Document, now: int) -> list[Cell]:
    annotation = "ingressclass.kubernetes.io/is-default-class"
    default = text(document, "metadata", "annotations", annotation) == "true"
    parameters = NONE
    if (reference := at(document, "spec", "parameters")) is not None:
        kind = ".".join(filter(None, (text(reference, "kind"), text(reference, "apiGroup"))))
        parameters = f"{kind}/{text(reference, 'name')}"
    return [
        name(document) + (" (default)" if default else ""),
        text(document, "spec", "controller"),
        parameters,
        age(document, now),
    ]


def _network_policy(document: Document, now: int) -> list[Cell]:
    return [name(document), selector(document, "spec", "podSelector"), age(document, now)]


def _service_cidr(document: Document, now: int) -> list[Cell]:
    return [name(document), ",".join(texts(document, "spec", "cidrs")), age(document, now)]


def _ip_address(document: Document, now: int) -> list[Cell]:
    """Return an IPAddress's cells; there is one cell more than columns, as upstream."""
    parent = at(document, "spec", "parentRef")
    if parent is None:
        return [name(document), NONE, age(document, now)]
    resource = ".".join(filter(None, (text(parent, "resource"), text(parent, "group"))))
    parts = (resource.lower(), text(parent, "namespace"), text(parent, "name"))
    return [name(document), "/".join(filter(None, parts)), age(document, now)]


PRINTERS: Mapping[str, RowPrinter] = {
    "Service": _service,
    "Endpoints": _endpoints,
    "EndpointSlice.discovery.k8s.io": _endpoint_slice,
    "Ingress.networking.k8s.io": _ingress,
    "IngressClass.networking.k8s.io": _ingress_class,
    "NetworkPolicy.networking.k8s.io": _network_policy,
    "ServiceCIDR.networking.k8s.io": _service_cidr,
    "IPAddress.networking.k8s.io": _ip_address,
}
