"""Opens a page from its file in a headless Chromium that has no network. Prints the title, the rows of the first table,
the texts of the flame graphs, those of the frames that are as wide as the graph after a click on the last frame, every
problem that the browser reports, and every request but
that of the file. Also opens the page without scripts, and prints the texts of the flame graphs that are visible then.

With a folder as second argument, it saves pictures of the page in both colour schemes there.
"""
import json
import os
import pathlib
import sys

from playwright.sync_api import sync_playwright

ADDRESS = pathlib.Path(sys.argv[1]).resolve().as_uri()

with sync_playwright() as playwright:
    chromium = os.environ.get("EVENTRING_CHROMIUM", "/usr/bin/chromium")
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 800})
    page = context.new_page()
    problems, requests = [], []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requests.append(request.url) if request.url != ADDRESS else None)
    page.goto(ADDRESS)
    TEXTS = "graphs => graphs.map(graph => [...graph.querySelectorAll('text')].map(text => text.textContent))"
    WIDE = """graphs => graphs.map(graph => [...graph.querySelectorAll('svg')]
        .filter(frame => frame.querySelector('rect').getBoundingClientRect().width > graph.getBoundingClientRect().width - 2)
        .map(frame => frame.querySelector('text').textContent))"""
    graphs = page.locator("svg.flame")
    flames = graphs.evaluate_all(TEXTS)
    for graph in graphs.all():
        graph.locator("rect").last.click()
    zoomed = graphs.evaluate_all(WIDE)
    for graph in graphs.all():
        graph.locator("rect").first.click()
    if len(sys.argv) > 2:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(1000)
            page.screenshot(path=os.path.join(sys.argv[2], f"{scheme}.png"), full_page=True)
    rows = page.evaluate("[...document.querySelectorAll('table')[0].tBodies[0].rows].map(row => [...row.cells].map(cell => cell.innerText.trim()))")
    title = page.title()
    without = browser.new_context(offline=True, java_script_enabled=False, viewport={"width": 1000, "height": 800})
    plain = without.new_page()
    plain.goto(ADDRESS)
    visible = [text.text_content() for text in plain.locator("svg.flame text").all() if text.is_visible()]
    print(json.dumps({
        "title": title, "rows": rows, "flames": flames, "zoomed": zoomed, "without_scripts": visible,
        "problems": problems, "requests": requests,
    }))
    browser.close()
