"""Rings and captures for the tests, made by the project's own programs."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

# Nobody can make a ring here: no test makes one among those of the user.
os.environ["EVENTRING_DIR"] = "/dev/null/rings"
ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(os.environ.get("EVENTRING_PROGRAMS", ROOT / "target" / "debug"))
EVENTRING = PROGRAMS / "eventring"
SERVICE = PROGRAMS / "examples" / "http_service"
DEMO = PROGRAMS / "examples" / "demo"


def run(*arguments):
    """Runs `eventring` and returns what it prints."""
    return subprocess.run([EVENTRING, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """Returns a directory with a kept ring `shop` of the HTTP service, and its capture `shop.evc`."""
    for program in (EVENTRING, SERVICE, DEMO):
        assert program.exists(), f"{program} is missing: the stage `python` of .ci/run builds it"
    directory = tmp_path_factory.mktemp("rings")
    ring = directory / "shop"
    subprocess.run([SERVICE, "--requests", "500", "--ring", ring, "--keep"], check=True, capture_output=True)
    run("capture", ring, "-o", directory / "shop.evc", "--json")
    return directory


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """Returns a directory with `lines.evc`: a ring of typed events that has lost its oldest ones."""
    directory = tmp_path_factory.mktemp("demo")
    capture = directory / "lines.evc"
    command = [DEMO, "writer", "--seconds", "600", "--rate", "max"]
    environment = os.environ | {"EVENTRING_DIR": str(directory)}
    writer = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ring = writer.stdout.readline().strip()
    writer.stdin.write("\n")
    writer.stdin.flush()
    while json.loads(run("info", "--json", ring))["events"]["oldest_seqno"] <= 1:
        time.sleep(0.05)
    # A program that is killed leaves its rings behind.
    writer.kill()
    writer.communicate()
    run("capture", ring, "-o", capture, "--json")
    return directory


@contextlib.contextmanager
def running(ring, *options):
    """Runs the HTTP service with this ring until the block ends."""
    command = [SERVICE, "--requests", "100000000", "--ring", ring, *options]
    service = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    try:
        while not ring.exists():
            time.sleep(0.01)
        yield service
    finally:
        service.kill()
        service.wait()


def stop(service):
    """Stops the service, and returns when each of its threads stands still. A signal alone says nothing of when."""
    service.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, service.pid, os.WSTOPPED)


def assert_each_seqno_is_counted_once(account):
    """Checks the sums of an account."""
    for ring in account["rings"]:
        counted = ring["read"] + ring["lost"] + ring["given_up"] + ring["filtered"]
        assert counted == ring["last_seqno"] - ring["first_seqno"] + 1, ring
        assert ring["read"] + sum(ring["missing_by_cause"].values()) == counted, ring
    for name in ["read", "lost", "given_up", "filtered", "damaged", "lost_payloads"]:
        assert account[name] == sum(ring[name] for ring in account["rings"]), name
