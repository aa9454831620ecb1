"""Rings and captures for the tests, made by the project's own programs."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(os.environ.get("EVENTRING_PROGRAMS", ROOT / "target" / "debug"))
EVENTRING = PROGRAMS / "eventring"
SERVICE = PROGRAMS / "examples" / "http_service"


def run(*arguments):
    """Runs `eventring` and returns what it prints."""
    return subprocess.run([EVENTRING, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """Returns a directory with a kept ring `shop` of the HTTP service, and its capture `shop.evc`."""
    for program in (EVENTRING, SERVICE):
        assert program.exists(), f"{program} is missing: cargo build --features cli --bins --examples"
    directory = tmp_path_factory.mktemp("rings")
    ring = directory / "shop"
    subprocess.run([SERVICE, "--requests", "500", "--ring", ring, "--keep"], check=True, capture_output=True)
    run("capture", ring, "-o", directory / "shop.evc", "--json")
    return directory
