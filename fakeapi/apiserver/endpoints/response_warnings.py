"""Warning headers of answers and of errors.

Their order is that in which a server finds them: the deprecation of the kind, what is decoded and
validated, webhooks and policies. An error has the warnings that were found before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fakeapi.apiserver.admission.webhooks import WebhookDispatcher
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.registry.request_scope import RequestScope
from fakeapi.apiserver.watch.watch_cursor import Watch
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import Response

Serve = Callable[[], Response | Watch]


def with_deprecation_warning(kind: ResourceInfo, serve: Serve) -> Response | Watch:
    """Return an answer, or raise an error, with the deprecation warning of its kind."""
    if not kind.deprecation:
        return serve()
    try:
        answer = serve()
    except StatusError as refusal:
        refusal.warnings = (kind.deprecation, *refusal.warnings)
        raise
    return _preceded(answer, (kind.deprecation,))


def with_warnings(
    scope: RequestScope, dispatcher: WebhookDispatcher | None, serve: Serve
) -> Response | Watch:
    """Return an answer, or raise an error, with the warnings of a request and its webhooks."""
    try:
        answer = _preceded(serve(), scope.warnings)
    except StatusError as refusal:
        refusal.warnings = (*scope.warnings, *(dispatcher.warnings if dispatcher else ()))
        raise
    if dispatcher is not None and dispatcher.warnings and isinstance(answer, Response):
        return replace(answer, warnings=(*answer.warnings, *dispatcher.warnings))
    return answer


def _preceded(answer: Response | Watch, warnings: Sequence[str]) -> Response | Watch:
    if warnings and isinstance(answer, Response):
        return replace(answer, warnings=(*warnings, *answer.warnings))
    return answer
