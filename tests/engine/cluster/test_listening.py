"""The socket at which REST is served."""

from __future__ import annotations

import asyncio
import socket

from engine.cluster.jobmanager import listen


async def test_small_answers_are_sent_at_once() -> None:
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def served(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        told.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listen("127.0.0.1", 0) as listener:
        async with await asyncio.start_server(served, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            assert await told
            writer.close()
            await writer.wait_closed()
