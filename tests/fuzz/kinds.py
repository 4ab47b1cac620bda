"""All kinds of inputs, and the servers that some of them are sent to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.fuzz import api_requests, credentials, files, servers, watch_frames
from tests.fuzz.kind import Kind

KINDS: Final[Mapping[str, Kind]] = {
    each.name: each
    for each in (
        api_requests.KIND,
        watch_frames.KIND,
        files.KIND,
        credentials.KIND,
        *servers.KINDS,
    )
}
SERVERS: Final = {"serve": servers.EXTENDER, "fakeapi": servers.FAKEAPI}
