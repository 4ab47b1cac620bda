"""In-process webhooks: an API in the same process calls the control plane's webhooks directly.

The webhook configurations name a Service, as if the webhooks ran in the cluster. The Service is not
resolved while the webhooks are served. Afterwards requests fail as they do for a Service without
endpoints.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from fakeapi.api import Api
from fakeapi.api.outcalls import WebhookFunction
from fakeapi.api.podspecs import pod_spec_errors
from fakeapi.controllers.spreading.reception import (
    Detach,
    Document,
    Handler,
    Handlers,
    WebhookEndpoint,
)

_SERVICE: Final = {"namespace": "reprieve-system", "name": "reprieve-webhooks"}


def in_process_endpoint(api: Api) -> WebhookEndpoint:
    """Return the webhook endpoint by which an API calls webhooks of its own process."""

    def attend(handlers: Handlers) -> Detach:
        return _serve_webhooks(api, handlers)

    return WebhookEndpoint(_client_config, attend, pod_spec_errors)


def _client_config(path: str) -> Document:
    return {"service": {**_SERVICE, "path": path}}


def _serve_webhooks(api: Api, handlers: Handlers) -> Detach:
    # Imported here to keep the start-up time of other components short.
    from fakeapi.controllers.spreading.copies import DEFINITION
    from fakeapi.controllers.spreadwebhooks.converting import answer_conversion
    from fakeapi.controllers.spreadwebhooks.names import PATHS

    def convert(review: dict[str, Any]) -> Any:
        return orjson.loads(answer_conversion(orjson.dumps(review)))

    hooks = {name: _in_process_webhook(handlers[path]) for name, path in PATHS.items()}
    api.webhooks.handlers.update(hooks)
    api.converters[DEFINITION] = convert

    def detach() -> None:
        for name, hook in hooks.items():
            if api.webhooks.handlers.get(name) is hook:
                del api.webhooks.handlers[name]
        if api.converters.get(DEFINITION) is convert:
            del api.converters[DEFINITION]

    return detach


def _in_process_webhook(handler: Handler) -> WebhookFunction:
    async def hook(review: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = orjson.loads(await handler(orjson.dumps(review)))
        return answer

    return hook
