"""What a page contains: the same values are rendered as HTML and encoded as JSON."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from extender.ledger.entry import LedgerPod, format_id


class View(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The content of a page, or of a part of it."""


class Link(View, frozen=True, kw_only=True):
    """A link to a page; ``current`` if it is the page that contains the link."""

    label: str
    url: str
    current: bool = False


class PodLink(View, frozen=True, kw_only=True):
    """A pod with the link to its page."""

    key: str
    url: str
    priority: int
    priority_class: str = ""
    team: str = ""
    owner: str = ""


def pod_link(pod: LedgerPod) -> PodLink:
    """Return the link to a pod."""
    return PodLink(
        key=pod.key,
        url=pod_url(pod.namespace, pod.name),
        priority=pod.priority,
        priority_class=pod.priority_class,
        team=pod.team,
        owner=pod.owner,
    )


def pod_url(namespace: str, name: str) -> str:
    """Return the path of the page of a pod."""
    return f"/ui/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"


def decision_url(number: int) -> str:
    """Return the path of the page of a decision."""
    return f"/ui/decisions/{format_id(number)}"
