"""The API server that a command connects to, as in clientcmd.

`connect` takes the first that applies:

1. a server URL that was given: plain, without credentials;
2. a kubeconfig that was given;
3. the service account of the pod this process runs in, if KUBERNETES_SERVICE_HOST is set and no
   context was requested;
4. the default kubeconfig: $KUBECONFIG (several files, separated as in $PATH) or ~/.kube/config.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from extender.kube.rest.http_transport import AiohttpTransport
from extender.kube.rest.server_url import server_endpoint


async def connect(
    server: str | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> AiohttpTransport:
    """Return a transport to the server that the arguments and the environment name.

    `context` overrides the kubeconfig's current context. Raise ConnectionConfigError. The server is
    not contacted before the first request.
    """
    if server is not None:
        return AiohttpTransport(server_endpoint(server, environ))
    # Imported on use: kubernetes_asyncio takes a quarter of a second.
    from extender.kube.rest.kubeconfig import in_cluster_endpoint, kubeconfig_endpoint

    if kubeconfig is None and environ.get("KUBERNETES_SERVICE_HOST") and context is None:
        return AiohttpTransport(await in_cluster_endpoint(environ))
    return AiohttpTransport(await kubeconfig_endpoint(kubeconfig, context, environ))
