"""The line server: what people send to a control stream, as lines of text over TCP.

    page ──▶ redis channel `control:<port>` ──▶ this process ──▶ every job that connected

Guarantee  at most once, as a socket is: a line that is sent while no job listens is gone, which is
           why `controlplane.live.control` asks first how many do.
Needs    Redis; while it is away no line comes, and listeners stay connected.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
from contextlib import suppress

import redis.asyncio as aioredis
from redis import RedisError

from controlplane.live.control import LISTENERS_SECONDS, channel, listeners_key
from controlplane.supervisor.ports import HOST

log = logging.getLogger("control")
RETRY_S = 1.0
MAX_WAITING_BYTES = 1_048_576
"""A listener that has this much unread is not listening any more."""


class LineServer:
    """Sends each line to everyone who is connected."""

    def __init__(self, port: int, client: aioredis.Redis) -> None:
        self._port = port
        self._redis = client
        self._listeners: set[asyncio.StreamWriter] = set()

    @property
    def listening(self) -> int:
        """How many are connected."""
        return len(self._listeners)

    async def serve(self) -> None:
        """Run until cancelled."""
        server = await asyncio.start_server(self._hold, HOST, self._port)
        async with server, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._relay())
            tasks.create_task(self._announce())

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep a listener until it hangs up; what it sends is not read as anything."""
        self._listeners.add(writer)
        try:
            while await reader.read(4_096):
                pass
        except (OSError, asyncio.CancelledError):
            pass  # it is gone, or we end: streams of Python 3.11 would report that as a fault
        finally:
            self._listeners.discard(writer)
            writer.close()

    async def _relay(self) -> None:
        while True:
            try:
                async with self._redis.pubsub() as subscription:
                    await subscription.subscribe(channel(self._port))
                    async for message in subscription.listen():
                        if message["type"] == "message":
                            self._send(message["data"])
            except (RedisError, OSError) as error:
                log.warning("redis is away, trying again: %s", error)
                await asyncio.sleep(RETRY_S)

    def _send(self, line: bytes) -> None:
        for writer in list(self._listeners):
            if writer.transport.get_write_buffer_size() > MAX_WAITING_BYTES:
                writer.transport.abort()
                continue
            writer.write(line + b"\n")

    async def _announce(self) -> None:
        """Keep the number of listeners where the pages can see it."""
        while True:
            with suppress(RedisError, OSError):
                await self._redis.set(
                    listeners_key(self._port), self.listening, ex=LISTENERS_SECONDS
                )
            await asyncio.sleep(RETRY_S)


async def _main(port: int) -> None:
    client = aioredis.Redis.from_url(os.environ["HEADWATER_REDIS_URL"])
    serving = asyncio.create_task(LineServer(port, client).serve())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving
    await client.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="the line server of control streams")
    parser.add_argument("--port", type=int, required=True)
    logging.basicConfig(level=logging.INFO)
    asyncio.run(_main(parser.parse_args().port))
