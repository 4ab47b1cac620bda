"""Calls of webhooks: one AdmissionReview for each, and the failure policy if a call fails.

A *handler*, a function of this process, is called instead of the webhook of its name; other
webhooks are called at the address of their clientConfig (:mod:`fakeapi.apiserver.webhooks.calls`).

Source: k8s.io/apiserver/pkg/util/webhook/client.go.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from fakeapi.apiserver.admission.webhooks.admission_review import (
    CallError,
    ReviewResponse,
    admission_review,
    decode_response,
    denial,
)
from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.admission.webhooks.configured_webhooks import Webhook, WebhookConfigurations
from fakeapi.apiserver.admission.webhooks.rule_matcher import WebhookInvocation
from fakeapi.apiserver.store.object_store import Document, Store
from fakeapi.apiserver.webhooks.calls import (
    InvalidReviewError,
    PendingCalls,
    ServiceUrls,
    WebhookCall,
    WebhookCallError,
    WebhookFunction,
    display_url,
    resolve_address,
)
from fakeapi.apiserver.wire.errors import StatusError, bad_request, internal_error

_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")


@dataclass(frozen=True, slots=True)
class _ReviewCall:
    """A review and its call; ``named`` is the address as error messages print it."""

    webhook: Webhook
    review: Document
    call: WebhookCall
    address_text: str


class _Invocation:
    """The state of one webhook call that all attempts at a request share: its uid and its review.

    The review is made again if the configuration of the webhook has changed in the meantime.
    """

    def __init__(self, uid: str) -> None:
        self._uid = uid
        self._review_call: _ReviewCall | None = None

    def review_call(self, webhook: Webhook, make: Callable[[str], _ReviewCall]) -> _ReviewCall:
        """Return the review for a webhook; errors that ``make`` raises are passed on."""
        call_of = self._review_call
        if call_of is None or call_of.webhook is not webhook:
            call_of = self._review_call = make(self._uid)
        return call_of


class Webhooks:
    """The webhooks of one API.

    ``handlers`` are functions that are called instead of webhooks, by name. ``services`` are the
    URLs of services, by ``namespace/name``. ``uid`` returns the UIDs of reviews; a review that
    another attempt at the same request makes again keeps its UID.
    """

    def __init__(
        self, store: Store, outbox: PendingCalls, uid: Callable[[], str], services: ServiceUrls
    ) -> None:
        self.configured = WebhookConfigurations(store)
        self.handlers: MutableMapping[str, WebhookFunction] = {}
        self._objects = store
        self._services = services
        self._outbox = outbox
        self._uid = uid

    @property
    def any(self) -> bool:
        """Whether any webhook is configured."""
        return bool(self.configured.of("mutating") or self.configured.of("validating"))

    def call_all(
        self,
        invocations: Sequence[tuple[WebhookInvocation, AdmissionAttributes]],
        versioned_objects: VersionedObjects,
    ) -> list[ReviewResponse | StatusError | CallError]:
        """Call webhooks in parallel; return the response of each, or the error of its call.

        Raise CallsPendingError.
        """
        questions = [self._review_call(*one, versioned_objects) for one in invocations]
        calls = [q.call for q in questions if isinstance(q, _ReviewCall)]
        replies = iter(self._outbox.call_all(calls))
        return [
            _outcome(call_of, next(replies)) if isinstance(call_of, _ReviewCall) else call_of
            for call_of in questions
        ]

    def _review_call(
        self,
        invocation: WebhookInvocation,
        attributes: AdmissionAttributes,
        versioned_objects: VersionedObjects,
    ) -> _ReviewCall | StatusError | CallError:
        webhook = invocation.webhook
        if attributes.dry_run and webhook.side_effects not in _NO_SIDE_EFFECTS:
            return bad_request(f'admission webhook "{webhook.name}" does not support dry run')
        if not webhook.client.get("url") and not webhook.client.get("service"):
            return CallError("webhook configuration must have either service or URL")
        named = f"{display_url(webhook.client)}?timeout={webhook.timeout_seconds}s"

        def make(uid: str) -> _ReviewCall:
            review = admission_review(invocation, attributes, versioned_objects)
            return _ReviewCall(webhook, review, self._call(webhook, review, uid), named)

        subject = _call_key(webhook, attributes)
        asking = self._outbox.once(subject, lambda: _Invocation(self._uid()))
        try:
            return asking.review_call(webhook, make)
        except CallError as error:
            return error
        except WebhookCallError as error:
            return _post_error(named, error)

    def _call(self, webhook: Webhook, review: Document, uid: str) -> WebhookCall:
        """Return the call of a webhook. Raise WebhookCallError."""
        review["request"]["uid"] = uid
        body = orjson.dumps(review)
        seconds, handler = webhook.timeout_seconds, self.handlers.get(webhook.name)
        if handler is not None:
            return WebhookCall(webhook.name, body, timeout_seconds=seconds, hook=handler)
        address = resolve_address(self._objects, self._services, webhook.client)
        bundle = b64decode(webhook.client.get("caBundle") or "")
        url = f"{address.url}?timeout={seconds}s"
        return WebhookCall(url, body, bundle, address.host, seconds)


def request_error(
    webhook: Webhook, outcome: ReviewResponse | StatusError | CallError
) -> StatusError | None:
    """Return the error of a request after a webhook call; None if the request is allowed.

    A call that failed is an error only if the webhook's failure policy is not Ignore.
    """
    if isinstance(outcome, StatusError):
        return outcome
    if isinstance(outcome, ReviewResponse):
        return None if outcome.allowed else denial(webhook.name, outcome.result)
    if webhook.fails_open:
        return None
    return internal_error(f'failed calling webhook "{webhook.name}": {outcome}')


def _outcome(
    review_call: _ReviewCall, answer: bytes | WebhookCallError
) -> ReviewResponse | CallError:
    if isinstance(answer, InvalidReviewError):
        return CallError(f"failed to call webhook: {answer}")
    if isinstance(answer, WebhookCallError):
        return _post_error(review_call.address_text, answer)
    try:
        return decode_response(review_call.review, answer, review_call.webhook.role)
    except CallError as error:
        return error


def _call_key(webhook: Webhook, attributes: AdmissionAttributes) -> Hashable:
    """Return the key of a webhook call within its request; much cheaper than the review itself."""
    about = orjson.dumps((attributes.object, attributes.old, attributes.options))
    return webhook.role, webhook.key, attributes.kind.kind, attributes.operation, about


def _post_error(named: str, error: WebhookCallError) -> CallError:
    return CallError(f'failed to call webhook: Post "{named}": {error}')
