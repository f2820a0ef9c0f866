"""A server on this machine, in place of the addresses of the data sets."""

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requested.append(self.path)
        body, claimed_length = self.server.bodies.get(self.path, (b"none", 4))
        found = self.path in self.server.bodies
        self.send_response(self.server.status if found else 404)
        self.send_header("Content-Length", str(claimed_length))
        self.end_headers()
        if self.server.half_sent is not None:
            self.wfile.write(body[: len(body) // 2])
            self.server.half_sent.set()
            self.server.go_on.wait(30.0)
            return
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class LoopbackServer(ThreadingHTTPServer):
    """A server of the files that it is given; remembers what was requested."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.bodies = {}
        self.requested = []
        self.half_sent = self.go_on = None

    def stall(self):
        """Send half of each file, and then nothing until ``go_on`` is set."""
        self.half_sent, self.go_on = threading.Event(), threading.Event()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def serve(self, path, body, claimed_length=None):
        self.bodies[path] = (body, claimed_length or len(body))


@contextlib.contextmanager
def run_server():
    """Run a server in a thread as long as the context lasts."""
    with LoopbackServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def closed_address():
    """An address at which nothing answers."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}"
