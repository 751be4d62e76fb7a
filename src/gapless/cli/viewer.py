"""How does a trace reach the Perfetto viewer without leaving the machine? A server on 127.0.0.1 that hands it over.

Its page opens the viewer and repeats PING until the viewer answers PONG, then posts the trace to the viewer's window;
the viewer's page has no need to reach this server, and nobody who lacks the address's random part can read anything.
"""

from __future__ import annotations

import html
import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event

VIEWER = "https://ui.perfetto.dev"

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@title · gapless</title>
<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">
<style>body{font:16px/1.6 system-ui,sans-serif;max-width:36em;margin:12vh auto;padding:0 20px}
button{font:inherit;font-weight:600;padding:8px 22px;border-radius:8px;border:0;background:#2b58d6;color:#fff;cursor:pointer}</style>
</head><body><h1>@title</h1>
<p>The trace goes from this page to the viewer's window inside your browser; it is not uploaded.</p>
<p><button id="open">Open in Perfetto</button></p><p id="status" role="status"></p>
<script>
const config = @config;
const status = document.getElementById("status");
const trace = fetch(config.trace).then((answer) => { if (!answer.ok) throw new Error(answer.status); return answer.arrayBuffer(); });
document.getElementById("open").addEventListener("click", async () => {
  const viewer = window.open(config.viewer);
  if (!viewer) { status.textContent = "The browser blocked the window: allow pop-ups for this page and try again."; return; }
  status.textContent = "Waiting for the viewer ...";
  let buffer;
  try { buffer = await trace; } catch (error) { status.textContent = "The trace is no longer served: run gapless view again."; return; }
  const origin = new URL(config.viewer).origin;
  let tries = 0;
  const timer = setInterval(() => {
    viewer.postMessage("PING", origin);
    if (++tries > 600) { clearInterval(timer); status.textContent = "The viewer does not answer; is " + origin + " reachable?"; }
  }, 100);
  window.addEventListener("message", function answered(event) {
    if (event.data !== "PONG" || event.origin !== origin || event.source !== viewer) return;
    clearInterval(timer);
    window.removeEventListener("message", answered);
    viewer.postMessage({ perfetto: { buffer, title: config.title, fileName: config.file, keepApiOpen: false } }, origin);
    status.textContent = "Handed over. This page and the command may be closed.";
    fetch(config.done, { method: "POST" }).catch(() => undefined);
  });
});
</script></body></html>
"""


class TraceServer:
    """Serves one trace and the page that hands it over, on 127.0.0.1 and a free port; a context manager."""

    def __init__(self, title: str, data: bytes, viewer: str = VIEWER) -> None:
        self.handed_over = Event()
        self._token = secrets.token_urlsafe(16)
        self._title, self._viewer = title, viewer
        self._data = data
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self._server.server_port}/{self._token}/"

    def serve(self) -> None:
        """Answer requests until `stop`."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """End `serve` and free the port."""
        self._server.shutdown()
        self._server.server_close()

    def page(self) -> bytes:
        """The page that opens the viewer."""
        config = {
            "viewer": self._viewer, "title": self._title, "file": f"{self._title}.json.gz",
            "trace": f"/{self._token}/trace", "done": f"/{self._token}/done",
        }  # fmt: skip
        text = json.dumps(config).replace("<", "\\u003c")
        return _PAGE.replace("@title", html.escape(self._title)).replace("@config", text).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self._refused():
                    return
                if self.path == f"/{outer._token}/":
                    self._answer(outer.page(), "text/html; charset=utf-8")
                elif self.path == f"/{outer._token}/trace":
                    self._answer(outer._data, "application/octet-stream")
                else:
                    self.send_error(404)

            def do_POST(self) -> None:
                if self._refused():
                    return
                if self.path == f"/{outer._token}/done":
                    outer.handed_over.set()
                    self._answer(b"", "text/plain")
                else:
                    self.send_error(404)

            def _refused(self) -> bool:
                """Another name for this address would let a foreign page read the answer (DNS rebinding)."""
                if self.headers.get("Host") == f"127.0.0.1:{self.server.server_port}":  # type: ignore[attr-defined]
                    return False
                self.send_error(403)
                return True

            def _answer(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Requests are nobody's concern."""

        return Handler
