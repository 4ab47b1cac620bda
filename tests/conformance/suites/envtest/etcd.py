"""An etcd for envtest that only answers the health check: fakeapi needs none."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class HealthHandler(BaseHTTPRequestHandler):
    """Answers every GET as an etcd that is healthy."""

    def do_GET(self) -> None:
        """Send the answer."""
        body = b'{"health":"true"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Listen where the flags say, until the process is ended."""
    parser = ArgumentParser("etcd", allow_abbrev=False)
    parser.add_argument("--listen-client-urls", required=True)
    flags, _ = parser.parse_known_args()
    address = urlsplit(flags.listen_client_urls)
    parent = os.getppid()
    with ThreadingHTTPServer((address.hostname or "", address.port or 0), HealthHandler) as server:
        server.timeout = 1
        while os.getppid() == parent:  # some tests end without stopping what they have started
            server.handle_request()


if __name__ == "__main__":
    main()
