"""The supervisor with real processes: it starts, heals, ends, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import timedelta
from pathlib import Path

import httpx
import psutil
import pytest
from django.utils import timezone
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from controlplane.supervisor.redis_server import redis_binary
from engine.testing.cluster import PATIENCE_S
from free_ports import free_ports

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(redis_binary() is None, reason="no Redis server for this platform"),
]

CHECKOUT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {  # a shell's: without what the tests' own settings need
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("HEADWATER_", "DJANGO_", "PYTEST_"))
}


class Up:
    """One `manage.py up`."""

    def __init__(self, home):
        self.home = home
        self.ports = free_ports(3)
        self.process = self.start()
        self.said = []
        self.cookies = None

    def arguments(self):
        names = ("--port", "--engine-port", "--control-port")
        pairs = zip(names, map(str, self.ports), strict=True)
        return ["--home", str(self.home), *(part for pair in pairs for part in pair)]

    def start(self):
        return subprocess.Popen(
            [sys.executable, "manage.py", "up", *self.arguments()],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )

    def wait_for(self, words):
        for line in self.process.stdout:
            self.said.append(line)
            if words in line:
                return line
        pytest.fail(f"up ended without {words!r}; it said:\n{''.join(self.said)}")

    def processes(self):
        found = [self.process.pid, *psutil.Process(self.process.pid).children(recursive=True)]
        return [psutil.Process(one) if isinstance(one, int) else one for one in found]

    def child(self, words):
        return next(
            one
            for one in psutil.Process(self.process.pid).children()
            if words in " ".join(one.cmdline())
        )

    def answers(self, path):
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.ports[0]}{path}", timeout=PATIENCE_S
        ) as got:
            return got.status


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    running = Up(tmp_path_factory.mktemp("up") / "home")
    yield running
    if running.process.poll() is None:
        running.process.send_signal(signal.SIGINT)
    running.process.stdout.read()
    running.process.wait(PATIENCE_S)
    running.process.stdout.close()


def alive(processes):
    """Those that still run; the dead ones that nobody has collected yet do not."""
    left = []
    for one in processes:
        try:
            if one.is_running() and one.status() != psutil.STATUS_ZOMBIE:
                left.append(one)
        except psutil.NoSuchProcess:
            continue
    return left


def eventually(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.1)


# The tests of this module share one platform and run in this order.


def test_it_says_ready_with_an_address_that_answers(up):
    line = up.wait_for("READY ")
    assert line.startswith(f"READY http://127.0.0.1:{up.ports[0]}/login/once/")
    assert up.answers("/api/v2/ping") == 204
    secret = line.split()[1].rstrip("/").rpartition("/")[2]
    assert not [file for file in (up.home / "logs").iterdir() if secret in file.read_text()]


def test_points_need_the_token_which_only_the_engine_is_told(up):
    request = urllib.request.Request(
        f"http://127.0.0.1:{up.ports[0]}/api/v2/write?bucket=outputs", b"m f=1 1", method="POST"
    )
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=PATIENCE_S)
    token = (up.home / "points_token").read_text()
    request.add_header("Authorization", f"Token {token}")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as got:
        assert got.status == 204
    assert "HEADWATER_POINTS_TOKEN" not in up.child("uvicorn").environ()


def test_a_program_that_is_killed_comes_back(up):
    programs = (("collect", "collector"), ("uvicorn", "web"), ("cluster.jobmanager", "engine"))
    for words, name in programs:
        before = up.child(words)
        before.kill()
        up.wait_for(f"{name} ended (killed by SIGKILL)")
        eventually(lambda words=words, before=before: _replaced(up, words, before))
    eventually(lambda: _answers(up))


def test_a_socket_outlives_the_redis_server(up):
    with _socket(up) as socket:
        socket.send(json.dumps({"op": "sub", "topics": {"fleet": None}}))
        while _hear(socket, "snap", "patch")["d"]["sum"].get("engine") != "ok":
            pass  # the engine was only just started again
        _hear(socket, "patch")  # the collector looks every second
        up.child("redis.sock").kill()
        up.wait_for("redis ended (killed by SIGKILL)")
        killed_ms = timezone.now().timestamp() * 1000
        while _hear(socket, "patch", "snap")["ts"] < killed_ms + 1_000:
            pass


def test_operations_and_figures_come_back_from_a_redis_that_lost_everything(up, tmp_path):
    began = (timezone.now() - timedelta(seconds=90)).isoformat()
    arguments = f"--no-points --anchor {began} --output {tmp_path}"
    with _browser(up) as browser, _socket(up) as socket:
        wish = {"name": "flights", "team": "demo", "parallelism": "1", "arguments": arguments}
        file = ("flights.py", (CHECKOUT / "examples" / "flights.py").read_bytes())
        answer = browser.post("/jobs/deploy/", data=wish, files={"file": file})
        assert answer.status_code == 302, answer.text
        up.child("redis.sock").kill()  # the task that was sent is gone with it
        for kept in (up.home / "redis").rglob("*.*"):
            if kept.is_file():
                kept.unlink(missing_ok=True)
        up.wait_for("redis ended (killed by SIGKILL)")
        socket.send(json.dumps({"op": "sub", "topics": {"fleet": None}}))
        while not _rates(_hear(socket, "patch", "snap")["d"]):
            pass
        page = browser.get("/jobs/").text
        assert 'data-state="running"' in page
        stop = {"how": "cancel", "typed": "flights"}
        assert browser.post("/jobs/flights/stop/", data=stop).status_code == 302
        eventually(lambda: 'data-state="canceled"' in browser.get("/jobs/").text)


def test_a_page_of_another_port_cannot_open_a_socket(up):
    with pytest.raises(InvalidStatus, match="403"), _socket(up, origin="http://127.0.0.1:1"):
        pass


def test_a_second_one_in_the_same_home_is_refused(up):
    second = subprocess.run(
        [sys.executable, "manage.py", "up", *up.arguments()],
        cwd=CHECKOUT,
        capture_output=True,
        env=ENVIRONMENT,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert second.returncode != 0
    assert f"headwater already runs in {up.home}: process {up.process.pid}" in second.stderr


def test_a_taken_port_is_refused_with_one_sentence(up, tmp_path):
    arguments = ["--home", str(tmp_path / "other"), *up.arguments()[2:]]
    other = subprocess.run(
        [sys.executable, "manage.py", "up", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        env=ENVIRONMENT,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert f"port {up.ports[0]} is taken by another program" in other.stderr
    assert "Traceback" not in other.stderr


def test_ctrl_c_leaves_nothing_behind(up):
    processes = up.processes()
    assert len(processes) > 7
    up.process.send_signal(signal.SIGINT)
    up.wait_for("headwater: ended")
    up.process.wait(PATIENCE_S)
    assert up.process.returncode == 0
    eventually(lambda: not alive(processes))


def test_killing_the_supervisor_takes_everything_with_it_and_the_home_can_be_used_again(up):
    up.process.stdout.close()
    up.process = up.start()
    up.wait_for("READY ")
    processes = up.processes()
    up.process.kill()
    up.process.wait(PATIENCE_S)
    eventually(lambda: not alive(processes))
    up.process.stdout.close()
    up.process = up.start()
    up.wait_for("READY ")


def _replaced(up, words, before):
    try:
        return up.child(words).pid != before.pid
    except (StopIteration, psutil.NoSuchProcess):
        return False


def _cookies(up):
    """Those that the printed link gives, once."""
    if up.cookies is None:
        link = next(line for line in up.said if line.startswith("READY ")).split()[1]
        with httpx.Client(follow_redirects=True, timeout=PATIENCE_S) as browser:
            assert browser.get(link).status_code == 200
            up.cookies = dict(browser.cookies)
    return up.cookies


def _browser(up):
    """A browser that is signed in."""
    base, cookies = f"http://127.0.0.1:{up.ports[0]}", _cookies(up)
    headers = {"X-CSRFToken": cookies["headwater_csrf"], "Origin": base}
    return httpx.Client(base_url=base, cookies=cookies, headers=headers, timeout=PATIENCE_S)


def _socket(up, origin=None):
    """The socket of that browser."""
    base = f"http://127.0.0.1:{up.ports[0]}"
    cookie = "; ".join(f"{name}={value}" for name, value in _cookies(up).items())
    return connect(
        f"{base.replace('http', 'ws')}/ws/",
        origin=origin or base,
        additional_headers={"Cookie": cookie},
        open_timeout=PATIENCE_S,
        ping_timeout=PATIENCE_S,
    )


def _rates(table):
    """Rates of jobs in a message of the topic `fleet`."""
    return [row["in"] for key, row in table.items() if key != "sum" and row and row.get("in")]


def _hear(socket, *kinds):
    """The next message of one of these kinds."""
    while True:
        message = json.loads(socket.recv(timeout=PATIENCE_S))
        if message["k"] in kinds:
            return message


def _answers(up):
    try:
        return up.answers("/api/v2/ping") == 204
    except OSError:
        return False
