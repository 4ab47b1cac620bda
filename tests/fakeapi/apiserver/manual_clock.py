"""A clock that tests set."""

from __future__ import annotations


class ManualClock:
    """A clock that shows what tests set, also earlier times; nothing can sleep by it."""

    def __init__(self, seconds: float = 0.0, epoch_ns: int = 0) -> None:
        self.seconds = seconds
        self._epoch_ns = epoch_ns

    def monotonic(self) -> float:
        return self.seconds

    def now_ns(self) -> int:
        return self._epoch_ns + round(self.seconds * 10**9)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def second(self) -> str:
        """Return the time in the first hour of 2026, in seconds, as Kubernetes writes it."""
        return f"2026-01-01T00:{int(self.seconds) // 60 % 60:02}:{int(self.seconds) % 60:02}Z"

    def micros(self) -> str:
        """Return the time in the first hour of 2026 as a MicroTime."""
        return f"{self.second()[:-1]}.{round(self.seconds % 1 * 1e6):06}Z"
