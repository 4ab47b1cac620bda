"""The options of the component ``kubelet``, beside those of every component.

They are separate from the kubelet's code, since a cluster needs them with or without kubelets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from extender.kube.client import Client

if TYPE_CHECKING:
    from fakeapi.controlplane.kubelet.scripts import SimulationScript  # loaded only if it is used

USER_AGENT: Final = "kubelet/v1.37.0 (linux/amd64) kubernetes/fakeapi"
"""The User-Agent of kubelets, which determines their field manager."""

ScriptSource = str | bytes | Mapping[str, Any]
"""A simulation script as a document, or its YAML."""


class ScriptError(ValueError):
    """A script is invalid; the text names the field and the expected value."""


@dataclass(frozen=True, slots=True)
class KubeletResponse:
    """An HTTP response of a kubelet; the status 0 means that nothing listens at the node's port."""

    status: int
    content_type: str
    body: bytes


KubeletEndpoint = Callable[[str, str, Mapping[str, str]], KubeletResponse | None]
"""Returns the response of a node to a path and query; None if its kubelet is not simulated."""


def _register_nothing(_answers: KubeletEndpoint) -> Callable[[], None]:
    return lambda: None


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """The options of hollow kubelets.

    ``script`` is the simulation script (None: the default behaviour), ``client`` sends the
    kubelets' requests (None: the client of the component). ``register_endpoint`` lets the API
    server proxy requests to nodes to a function, until the returned function is called.
    """

    script: SimulationScript | None = None
    client: Client | None = None
    register_endpoint: Callable[[KubeletEndpoint], Callable[[], None]] = _register_nothing


DEFAULT_KUBELET_OPTIONS: Final = KubeletOptions()
