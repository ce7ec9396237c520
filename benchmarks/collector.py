"""What the collector costs: an engine with many jobs, looked at every second.

    python -m benchmarks.collector [--jobs 200] [--seconds 20] [--profile out.svg]

    played engine (a process)  ◀──REST──  manage.py collect (a process)  ──▶  SQLite, Redis, series
      a checkpoint a second,                 its CPU time is measured,
      every figure moves                     and how many looks it made

Nothing but the collector is measured: the engine is played, and has no workers. Goal: 200 jobs in
half a core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from controlplane.supervisor.testing import running_redis

CHECKOUT = Path(__file__).resolve().parents[1]
PORT = 8_190
WARM_UP_S = 6.0


def main() -> None:
    """Play, watch, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--profile", help="write a flame graph with py-spy there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hw-collector-") as home, running_redis() as redis_url:
        environment = _environment(Path(home), redis_url)
        _run(environment, "manage.py", "migrate", "--verbosity", "0")
        _run(environment, "-m", "benchmarks.collector_parts", "rows", str(options.jobs), str(PORT))
        played = ("-m", "benchmarks.collector_parts", "engine", str(options.jobs), str(PORT))
        with _running(environment, *played), _running(environment, "manage.py", "collect") as pid:
            time.sleep(WARM_UP_S)
            if options.profile:
                _profile(pid, options.profile, options.seconds)
            _measure(pid, redis_url, options.jobs, options.seconds)


def _measure(pid: int, redis_url: str, jobs: int, seconds: float) -> None:
    import redis

    collector, client = psutil.Process(pid), redis.Redis.from_url(redis_url)
    before, looks = collector.cpu_times(), int(client.get("live:fleet:seq") or 0)
    began = time.monotonic()
    time.sleep(seconds)
    took, after = time.monotonic() - began, collector.cpu_times()
    cpu_s = after.user + after.system - before.user - before.system
    made = int(client.get("live:fleet:seq") or 0) - looks
    memory = collector.memory_info().rss / 2**20
    print(
        f"{jobs} jobs, every figure moving: {cpu_s / took:.2f} cores, "
        f"{made / took:.1f} looks a second, {memory:.0f} MiB"
    )


def _environment(home: Path, redis_url: str) -> dict[str, str]:
    return os.environ | {
        "HEADWATER_HOME": str(home),
        "HEADWATER_REDIS_URL": redis_url,
        "HEADWATER_ENGINE_URL": f"http://127.0.0.1:{PORT}",
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "PYTHONPATH": os.pathsep.join((str(CHECKOUT), str(CHECKOUT / "platform"))),
    }


def _run(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], cwd=CHECKOUT, env=environment, check=True)


@contextmanager
def _running(environment: dict[str, str], *arguments: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, *arguments], cwd=CHECKOUT, env=environment)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _profile(pid: int, path: str, seconds: float) -> None:
    argv = ["py-spy", "record", "--pid", str(pid), "--duration", str(int(seconds)), "-o", path]
    subprocess.run(argv, check=True)


if __name__ == "__main__":
    main()
