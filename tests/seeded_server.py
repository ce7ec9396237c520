"""The dashboard over seeded jobs, in one process: pages, socket, collector and a fake engine.

    python tests/seeded_server.py --port 24100          without a port: on any that is free
    READY http://127.0.0.1:24100 <session of mara, who may do everything> <session of noor>
    > tick            one second passes, the collector looks once, pages hear of it
    > work            a worker brings every operation on, once
    > finish          it brings every operation to its end
    > break, mend     savepoints fail from now on, or no more
    > hostile         one more job runs, and then fails, whose every text is markup
    > doomed, doom    one more job runs, and then fails
    > revenue         one more job runs, which can be replayed (seeded_replays.py)
    > replan          it runs with one more sink from now on
    > replay          its second version is replayed beside it, from the newest savepoint
    > pace 0.5        its replays come on by half a second at every tick
    > set back        each of them is started again, from a checkpoint
    > differ          the newest of them differs from the live job in two ways
    > remove, join    noor, an operator, is taken out of the team, or back into it

Each is answered with DONE.

Needs    a folder of its own in HEADWATER_HOME. The clock stands still between ticks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "platform"), str(CHECKOUT / "tests")]
os.environ["DJANGO_SETTINGS_MODULE"] = "seeded_settings"

import django  # noqa: E402

import seeded_clock  # noqa: E402

if __name__ == "__main__":  # whoever only imports this file keeps his clocks
    seeded_clock.show_everywhere()
django.setup()

import httpx  # noqa: E402
import uvicorn  # noqa: E402
from asgiref.sync import sync_to_async  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

import seeded_hostile  # noqa: E402
import seeded_rows  # noqa: E402
from controlplane.access.models import Membership, Role, Team  # noqa: E402
from controlplane.asgi import application  # noqa: E402
from controlplane.backends.models import Cluster  # noqa: E402
from controlplane.collector.board import Board  # noqa: E402
from controlplane.collector.diagnosis import LOOKS  # noqa: E402
from controlplane.collector.watcher import Watcher  # noqa: E402
from controlplane.live.consumer import LiveConsumer  # noqa: E402
from controlplane.metrics.line_protocol import Point, tags_of  # noqa: E402
from controlplane.metrics.store import ENGINE, series_store  # noqa: E402
from controlplane.operations import runner  # noqa: E402
from controlplane.operations.models import UNFINISHED, Operation  # noqa: E402
from engine.rest.app import create_app  # noqa: E402
from hostile import MARKUP  # noqa: E402
from seeded_engine import SeededEngine  # noqa: E402
from seeded_jobs import DOOMED_EDGES, DOOMED_OPS, START_MS  # noqa: E402

MINUTE_MS = 60_000
DOOMED_ID = "6" * 32
HISTORY_MINUTES = 360
MOST_TURNS = 100
"""Of a worker: more than any operation of these jobs takes."""


def seed(engine: SeededEngine, engine_url: str) -> tuple[Cluster, list[str]]:
    """Fill the database; the cluster, and the keys of the sessions that are signed in."""
    call_command("migrate", verbosity=0)
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    user = User.objects.create_superuser("mara", password=None)
    Team.objects.create(name="payments")
    cluster = Cluster.objects.create(name="prod", url=engine_url)
    for job_id, known in engine.known.items():
        seeded_rows.add_job(job_id, known.name, known.parallelism)
    series_store().write(ENGINE, list(_history()))
    noor = User.objects.create_user("noor")
    join()
    return cluster, [_session(one) for one in (user, noor)]


def join() -> None:
    """Make noor an operator of the team."""
    user, team = User.objects.get(username="noor"), Team.objects.get()
    Membership.objects.create(user=user, team=team, role=Role.OPERATOR)


def remove() -> None:
    """Take noor out of the team."""
    Membership.objects.filter(user__username="noor").delete()


def work() -> None:
    """Bring every operation on, also one that would rather wait."""
    for operation in Operation.objects.filter(state__in=UNFINISHED):
        runner.advance(operation.pk, timezone.now)


def replay() -> None:
    """Replay from the newest savepoint, until every task runs."""
    seeded_rows.start_replay()
    finish()


def finish() -> None:
    """Bring every operation to its end."""
    for _ in range(MOST_TURNS):
        if not Operation.objects.filter(state__in=UNFINISHED).exists():
            return
        work()


ROWS = {
    "work": work,
    "finish": finish,
    "remove": remove,
    "join": join,
    "replay": replay,
    "differ": seeded_rows.differ,
}


def _history():
    """Six hours of the job `orders`: a gap of four minutes, and a delay that begins to grow."""
    tags = tags_of({"job": "orders", "run": "1", "purpose": "live"}.items())
    sixths = (minute / 6 for minute in range(60, 0, -1))
    for minute in (*range(HISTORY_MINUTES, 10, -1), *sixths):
        if 311 <= minute <= 315:
            continue
        rows = 455_000 - 110 * (HISTORY_MINUTES - minute) + 900 * ((minute * 7) % 11)
        delay = 2_400 + 90 * (minute % 13) + max(0, 41 - minute) * 3_900
        fields = {
            "in": rows,
            "out": rows * 0.92,
            "delay_ms": delay,
            "busy": 74 + (minute < 41) * 23,
        }
        at_ns = int(START_MS - minute * MINUTE_MS) * 1_000_000
        yield Point("job", tags, tuple((k, float(v)) for k, v in fields.items()), at_ns)


def _session(user: User) -> str:
    store = SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    return str(store.session_key)


async def serve(port: int) -> None:
    """Serve until the input ends."""
    LiveConsumer.recheck_s = 1.0
    engine = SeededEngine()
    web, rest = (socket.create_server(("127.0.0.1", number)) for number in (port, 0))
    url, engine_url = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in (web, rest))
    cluster, keys = await sync_to_async(seed)(engine, engine_url)
    servers = [_server(create_app(engine)), _server(application)]
    running = [
        asyncio.create_task(server.serve([listener]))
        for server, listener in zip(servers, (rest, web), strict=True)
    ]
    # No socket between them: a look at three hundred operators is as many requests.
    watcher = Watcher(cluster, Board(), httpx.ASGITransport(create_app(engine)))
    while not all(server.started for server in servers):
        await asyncio.sleep(0.01)
    for _ in range(LOOKS):  # then there is an opinion on what holds a job back
        await watcher.look()
    print(f"READY {url} {' '.join(keys)}", flush=True)
    async for line in _lines():
        match line:
            case "tick":
                seeded_clock.ticks += 1
                engine.tick(seeded_clock.ticks)
                await watcher.look()
            case "hostile":
                await _add_hostile(engine, watcher)
            case "doomed":
                await _add_doomed(engine, watcher)
            case "doom":
                engine.fail(DOOMED_ID, "row 17 has no price")
                await watcher.look()
            case "revenue":
                await _add_revenue(engine, watcher)
            case "set back":
                engine.replays.set_back()
            case "replan":
                engine.replan()
            case "break" | "mend":
                engine.is_broken = line == "break"
            case _ if line.startswith("pace "):
                engine.replays.pace_s = float(line.removeprefix("pace "))
            case _:
                await sync_to_async(ROWS[line])()
        print("DONE", flush=True)
    for server in servers:
        server.should_exit = True
    await watcher.close()
    await asyncio.gather(*running)


async def _add_hostile(engine: SeededEngine, watcher: Watcher) -> None:
    engine.add(seeded_hostile.ID, "hostile", seeded_hostile.OPS, seeded_hostile.EDGES)
    await sync_to_async(seeded_rows.add_hostile)()
    await watcher.look()
    engine.fail(seeded_hostile.ID, MARKUP)
    await watcher.look()


async def _add_doomed(engine: SeededEngine, watcher: Watcher) -> None:
    engine.add(DOOMED_ID, "returns", DOOMED_OPS, DOOMED_EDGES)
    await sync_to_async(seeded_rows.add_job)(DOOMED_ID, "returns", 2)
    await watcher.look()


async def _add_revenue(engine: SeededEngine, watcher: Watcher) -> None:
    await engine.start_revenue()
    await sync_to_async(seeded_rows.add_revenue)()
    await watcher.look()


def _server(app) -> uvicorn.Server:
    options = {"log_level": "warning", "lifespan": "off", "timeout_graceful_shutdown": 1}
    return uvicorn.Server(uvicorn.Config(app, **options))


async def _lines():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        yield line.strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    asked = parser.parse_args()
    asyncio.run(serve(asked.port))
