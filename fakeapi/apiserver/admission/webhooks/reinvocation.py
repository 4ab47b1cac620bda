"""Which mutating policies and webhooks are called again after a later one has changed the object.

Source: k8s.io/apiserver/pkg/admission/plugin/{webhook,policy}/mutating/reinvocationcontext.go.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class ReinvocationContext:
    """Those called since the last change (``before``), and those to call ``again``.

    Only policies and webhooks with ``reinvocationPolicy: IfNeeded`` are recorded.
    ``is_reinvocation`` is whether all of them have been called once.
    """

    before: set[Hashable] = field(default_factory=set)
    again: set[Hashable] = field(default_factory=set)
    is_reinvocation: bool = False

    def has_to_call(self, key: Hashable) -> bool:
        """Return whether a policy or webhook is to be called in its turn."""
        return not self.is_reinvocation or key in self.again

    def require_reinvocation(self) -> None:
        """Record a change of the object: those called so far must be called again."""
        self.again |= self.before
        self.before.clear()
