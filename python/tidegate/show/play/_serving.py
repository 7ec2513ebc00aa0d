"""A server of one page for browsers on this machine."""

from __future__ import annotations

import errno
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tidegate.errors import OutputError

_HOST = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Serves a page at its root.

    Args:
        page: The page.
        port: The port; 0 for a free one.

    Raises:
        OutputError: when the port cannot be listened on.
    """

    daemon_threads = True
    # never share a port with another server
    allow_reuse_port = False

    def __init__(self, page: str, port: int = 0) -> None:
        self.page = page.encode()
        try:
            super().__init__((_HOST, port), _Handler)
        except OSError as error:
            hint = "; choose another --port, or leave it out for a free port" if error.errno == errno.EADDRINUSE else ""
            raise OutputError(f"--port {port}: the port cannot be opened: {error.strerror}{hint}") from None

    @property
    def address(self) -> str:
        """The address that a browser opens."""
        return f"http://{_HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors of requests: a browser may close the connection while it is answered."""
        del request, client_address


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    timeout = 60
    server: Server
    _always: ClassVar = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": "frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }

    def do_GET(self) -> None:
        """Answers with the page, or with a sentence if the address is wrong."""
        # a foreign host name that resolves to this machine (DNS rebinding) means that another site sends the request
        hosts = {f"{host}:{self.server.server_port}" for host in (_HOST, "localhost")}
        if self.headers.get("Host", "") not in hosts:
            self._answer(
                HTTPStatus.MISDIRECTED_REQUEST, f"this server answers only at {self.server.address}\n".encode()
            )
        elif self.path.partition("?")[0] != "/":
            self._answer(HTTPStatus.NOT_FOUND, f"the only page here is {self.server.address}\n".encode())
        else:
            self._answer(HTTPStatus.OK, self.server.page, "text/html")

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, status: HTTPStatus, content: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}
        for name, value in {**headers, **self._always}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Logs nothing."""
