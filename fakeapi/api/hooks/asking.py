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

from fakeapi.api.addresses import Services, address_of, name_of
from fakeapi.api.errors import StatusError, bad_request, internal_error
from fakeapi.api.hooks.attributes import Attributes
from fakeapi.api.hooks.configured import Configured, Webhook
from fakeapi.api.hooks.forms import Shapes
from fakeapi.api.hooks.matching import Invocation
from fakeapi.api.hooks.reviewing import CallError, Verdict, denial, review_of, verdict_of
from fakeapi.api.outcalls import AnsweredError, Hook, Outbox, OutCall, OutCallError
from fakeapi.store import Document, Store

_HARMLESS: Final = ("None", "NoneOnDryRun")


@dataclass(frozen=True, slots=True)
class _Question:
    """A review and its call; ``named`` is the address as error messages print it."""

    webhook: Webhook
    review: Document
    call: OutCall
    named: str


class _Asking:
    """The state of one webhook call that all attempts at a request share: its uid and its review.

    The review is made again if the configuration of the webhook has changed in the meantime.
    """

    def __init__(self, uid: str) -> None:
        self._uid = uid
        self._question: _Question | None = None

    def question(self, webhook: Webhook, make: Callable[[str], _Question]) -> _Question:
        """Return the review for a webhook; errors that ``make`` raises are passed on."""
        question = self._question
        if question is None or question.webhook is not webhook:
            question = self._question = make(self._uid)
        return question


class Webhooks:
    """The webhooks of one API.

    ``handlers`` are functions that are called instead of webhooks, by name. ``services`` are the
    URLs of services, by ``namespace/name``. ``uid`` returns the UIDs of reviews; a review that
    another attempt at the same request makes again keeps its UID.
    """

    def __init__(
        self, store: Store, outbox: Outbox, uid: Callable[[], str], services: Services
    ) -> None:
        self.configured = Configured(store)
        self.hooks: MutableMapping[str, Hook] = {}
        self._objects = store
        self._services = services
        self._outbox = outbox
        self._uid = uid

    @property
    def any(self) -> bool:
        """Whether any webhook is configured."""
        return bool(self.configured.of("mutating") or self.configured.of("validating"))

    def ask(
        self, asked: Sequence[tuple[Invocation, Attributes]], shapes: Shapes
    ) -> list[Verdict | StatusError | CallError]:
        """Call webhooks in parallel; return the response of each, or the error of its call.

        Raise CallsPendingError.
        """
        questions = [self._question(*one, shapes) for one in asked]
        calls = [q.call for q in questions if isinstance(q, _Question)]
        answers = iter(self._outbox.ask_all(calls))
        return [
            _outcome(question, next(answers)) if isinstance(question, _Question) else question
            for question in questions
        ]

    def _question(
        self, invocation: Invocation, attributes: Attributes, shapes: Shapes
    ) -> _Question | StatusError | CallError:
        webhook = invocation.webhook
        if attributes.dry_run and webhook.side_effects not in _HARMLESS:
            return bad_request(f'admission webhook "{webhook.name}" does not support dry run')
        if not webhook.client.get("url") and not webhook.client.get("service"):
            return CallError("webhook configuration must have either service or URL")
        named = f"{name_of(webhook.client)}?timeout={webhook.timeout_seconds}s"

        def make(uid: str) -> _Question:
            review = review_of(invocation, attributes, shapes)
            return _Question(webhook, review, self._call(webhook, review, uid), named)

        subject = _subject(webhook, attributes)
        asking = self._outbox.once(subject, lambda: _Asking(self._uid()))
        try:
            return asking.question(webhook, make)
        except CallError as error:
            return error
        except OutCallError as error:
            return _unposted(named, error)

    def _call(self, webhook: Webhook, review: Document, uid: str) -> OutCall:
        """Return the call of a webhook. Raise WebhookCallError."""
        review["request"]["uid"] = uid
        body = orjson.dumps(review)
        seconds, hook = webhook.timeout_seconds, self.hooks.get(webhook.name)
        if hook is not None:
            return OutCall(webhook.name, body, timeout_seconds=seconds, hook=hook)
        address = address_of(self._objects, self._services, webhook.client)
        bundle = b64decode(webhook.client.get("caBundle") or "")
        url = f"{address.url}?timeout={seconds}s"
        return OutCall(url, body, bundle, address.host, seconds)


def refusal_of(webhook: Webhook, outcome: Verdict | StatusError | CallError) -> StatusError | None:
    """Return the error of a request after a webhook call; None if the request is allowed.

    A call that failed is an error only if the webhook's failure policy is not Ignore.
    """
    if isinstance(outcome, StatusError):
        return outcome
    if isinstance(outcome, Verdict):
        return None if outcome.allowed else denial(webhook.name, outcome.result)
    if webhook.fails_open:
        return None
    return internal_error(f'failed calling webhook "{webhook.name}": {outcome}')


def _outcome(question: _Question, answer: bytes | OutCallError) -> Verdict | CallError:
    if isinstance(answer, AnsweredError):
        return CallError(f"failed to call webhook: {answer}")
    if isinstance(answer, OutCallError):
        return _unposted(question.named, answer)
    try:
        return verdict_of(question.review, answer, question.webhook.role)
    except CallError as error:
        return error


def _subject(webhook: Webhook, attributes: Attributes) -> Hashable:
    """Return the key of a webhook call within its request; much cheaper than the review itself."""
    about = orjson.dumps((attributes.object, attributes.old, attributes.options))
    return webhook.role, webhook.place, attributes.kind.kind, attributes.operation, about


def _unposted(named: str, error: OutCallError) -> CallError:
    return CallError(f'failed to call webhook: Post "{named}": {error}')
