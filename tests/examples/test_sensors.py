"""The sensors job on real processes: sums of zero, and a factor that outlives a crash."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.rest.client import EngineClient
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import PATIENCE_S, LocalCluster
from examples.truth import EXAMPLES
from fixtures.point_server import PointServer

pytestmark = pytest.mark.integration

RATE = 20

Points = dict[int, dict[str, float]]


@pytest.fixture
def server() -> Iterator[PointServer]:
    with PointServer().serving() as server:
        yield server


@pytest.fixture
def control() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        yield listener


@pytest.fixture
def cluster(
    tmp_path: Path, server: PointServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalCluster]:
    monkeypatch.setenv("HEADWATER_POINTS_URL", server.url)
    monkeypatch.setenv("HEADWATER_POINTS_TOKEN", "token")
    with LocalCluster(tmp_path / "home", task_managers=1, slots=2) as cluster:
        yield cluster


def start(client: EngineClient, output: Path, control: socket.socket) -> str:
    file = EXAMPLES / "sensors.py"
    address = f"127.0.0.1:{control.getsockname()[1]}"
    arguments = ("--rate", str(RATE), "--control", address, "--output", str(output))
    program = Program(client.upload(file.name, file.read_bytes()), arguments, 2)
    return client.run(RunRequest(program))


def points(server: PointServer, measurement: str, sensor: str) -> Points:
    """Fields of each point by its time in µs."""
    found = {}
    for (series, at), fields in list(server.points.items()):
        if series == f"{measurement},sensor={sensor}":
            pairs = (field.split("=") for field in fields.split(","))
            found[int(at)] = {name: float(value.rstrip("i")) for name, value in pairs}
    return found


def wait_for(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}"
        time.sleep(0.05)


def amplified_by(server: PointServer, factor: float, after: int) -> bool:
    """Whether a reading of the pressure after a time came out multiplied by a factor."""
    raw = points(server, "sensors_raw", "pressure")
    amplified = points(server, "sensors_amplified", "pressure")
    return any(
        at > after and at in raw and abs(raw[at]["value"]) > 0.1
        and abs(fields["value"] - factor * raw[at]["value"]) < 1e-9
        for at, fields in amplified.items()
    )  # fmt: skip


def newest(server: PointServer) -> int:
    return max(points(server, "sensors_amplified", "pressure"), default=0)


def test_sums_are_zero_and_the_factor_outlives_a_worker(
    cluster: LocalCluster, server: PointServer, control: socket.socket, tmp_path: Path
) -> None:
    with EngineClient(cluster.url, timeout=PATIENCE_S) as client:
        job = start(client, tmp_path / "sums", control)
        line, _ = control.accept()
        wait_for(lambda: amplified_by(server, 1.0, 0), "readings")
        with line:
            line.sendall(b"no command\npressure 2.5\npressure much\n")
            wait_for(lambda: amplified_by(server, 2.5, 0), "the factor")
            completed = client.checkpoints(job).counts.completed
            # Two more, so that one of them began after the factor was set.
            wait_for(
                lambda: client.checkpoints(job).counts.completed >= completed + 2, "checkpoints"
            )
            cluster.kill_worker()
        killed_at = newest(server)
        wait_for(lambda: amplified_by(server, 2.5, killed_at + 1_000_000), "the restored factor")
        client.cancel(job)
    sums = points(server, "sensors_sums", "pressure")
    assert len(sums) >= 3
    assert {fields["n"] for fields in sums.values()} == {RATE}
    assert max(abs(fields["sum"]) for fields in sums.values()) < 1e-9
