"""What kubelets are given beside what all parts of the control plane are.

It stands apart from what they do, since whoever starts a cluster needs it, with kubelets or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from extender.kube.client import Client

if TYPE_CHECKING:
    from fakeapi.controlplane.kubelet.scripts import Playbook  # who needs it, loads it

AGENT: Final = "kubelet/v1.37.0 (linux/amd64) kubernetes/fakeapi"
"""The User-Agent that kubelets bear, and so the field manager that they are."""

Script = str | bytes | Mapping[str, Any]
"""What is to happen to pods and nodes: a document, or its YAML."""


class ScriptError(ValueError):
    """A script is wrong; the text says where, and what was expected."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """An HTTP answer of a kubelet; the status 0 is none: nobody listens at the node's port."""

    status: int
    content_type: str
    body: bytes


NodeAnswers = Callable[[str, str, Mapping[str, str]], NodeAnswer | None]
"""Gives what a node answers to a path and query; None if its kubelet is not simulated."""


def _nobody_asks(_answers: NodeAnswers) -> Callable[[], None]:
    return lambda: None


@dataclass(frozen=True, slots=True)
class Outfit:
    """What kubelets need.

    ``playbook`` says what happens to pods and nodes (None: nothing out of the ordinary), ``client``
    asks in the kubelets' name (None: in everybody's). ``attend`` has the API server ask us what
    nodes answer, until its result is called.
    """

    playbook: Playbook | None = None
    client: Client | None = None
    attend: Callable[[NodeAnswers], Callable[[], None]] = _nobody_asks


NO_OUTFIT: Final = Outfit()
