"""Every page of the site, in a browser: nothing is cut, missing, empty or loaded from elsewhere, and the search works."""

import http.server
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from browser import chromium

ROOT = Path(__file__).resolve().parents[1]
QUERIES = {
    "contact": "docs/solvers/index",
    "gradient": "docs/concepts",
    "install": "docs/install",
    "muscle": "docs/api/actuators",
    "optimise": "docs/optimisation",
    "plasticity": "docs/materials",
    "USD": "docs/usd",
}
"""Words, and the page that is among the first three results."""
RECORDS = ("CHANGELOG", "benchmarks/", "docs/design/")
READ = """(() => {
    const seen = [...document.querySelectorAll("article pre, article .formula")].filter(block => block.offsetParent);
    const column = document.querySelector("#pst-primary-sidebar");
    return {
        cut: seen.filter(block => block.scrollWidth > block.clientWidth + 1).map(block => block.innerText),
        images: [...document.images].filter(image => image.complete && !image.naturalWidth).map(image => image.src),
        columns: column && column.offsetParent ? column.querySelectorAll("a").length : null,
        width: document.documentElement.scrollWidth,
    };
})()"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    pytest.importorskip("sphinx", reason="the site needs Sphinx")
    folder = tmp_path_factory.mktemp("site")
    words = ["-q", "-c", "docs", "-d", str(folder / "doctrees"), ".", str(folder / "html")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "sphinx", *words], cwd=ROOT, env=environment, check=True)
    return folder / "html"


@pytest.fixture(scope="module")
def page():
    with chromium() as page:
        for domain in ("Log", "Runtime", "Network"):
            page.call(f"{domain}.enable")
        yield page


def complaints(events):
    """What a browser said about a page, and the addresses outside of it that it asked for."""
    for event in events:
        said = event["params"]
        if event["method"] == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            yield said["entry"]["text"]
        elif event["method"] == "Runtime.exceptionThrown":
            yield said["exceptionDetails"]["text"]
        elif event["method"] == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
            yield str(said["args"][0].get("value"))
        elif event["method"] == "Network.requestWillBeSent" and said["request"]["url"].startswith("http"):
            yield said["request"]["url"]


def test_pages_are_whole(site, page):
    """At 1280 and at 390 pixels; only in narrow windows may code or a formula have to be scrolled."""
    found = {}
    for file in sorted(site.rglob("*.html")):
        name = file.relative_to(site).as_posix()
        if name.startswith("_") or 'http-equiv="refresh"' in file.read_text(encoding="utf-8"):
            continue
        for width in (1280, 390):
            page.resize(width, 900)
            page.events.clear()
            page.open(file)
            seen = page.run(READ)
            faults = [*complaints(page.events), *seen["images"], *(seen["cut"] if width == 1280 else [])]
            faults += ["an empty column"] * (seen["columns"] == 0)
            faults += [f"{seen['width']} pixels wide"] * (seen["width"] > width)
            if faults:
                found[name, width] = faults
    assert not found


def test_links_of_the_start_page_lead_somewhere(site, page):
    """Those of its films are not checked by the build."""
    page.open(site / "docs" / "index.html")
    links = page.run("[...document.querySelectorAll('.films a, .films source')].map(e => e.href ?? e.srcset)")
    assert len(links) == 12
    targets = [
        Path(link.removeprefix("file://")) if link.startswith("file:") else site / "docs" / link for link in links
    ]
    assert all(target.is_file() for target in targets)


def test_no_link_leads_to_an_address_that_stands_in_for_another(site):
    """The endings .example and .invalid are reserved: nobody answers there."""
    found = re.compile(r'(?:href|src)="https?://[^"/]*\.(?:example|invalid)[/"]')
    assert not [file for file in site.rglob("*.html") if found.search(file.read_text(encoding="utf-8"))]


def test_the_search_finds_what_explains_before_what_records(site, page):
    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, directory=str(site), **options)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for query, expected in QUERIES.items():
                page.call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/search.html?q={query}")
                page.until("document.querySelectorAll('ul.search li a').length > 4")
                time.sleep(0.3)  # results come one after the other
                links = page.run(
                    "[...document.querySelectorAll('ul.search li > a')].slice(0, 5).map(a => a.getAttribute('href'))"
                )
                first = [link.split(".html")[0] for link in links]
                assert expected in first[:3], (query, first)
                assert not [name for name in first if name.startswith(RECORDS)], (query, first)
        finally:
            server.shutdown()
