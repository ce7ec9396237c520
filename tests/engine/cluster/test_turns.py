"""Turns on the event loop: everybody else is heard between two of them."""

from __future__ import annotations

import asyncio

from engine.cluster.turns import Turns


async def test_between_two_turns_whoever_else_is_ready_goes_on() -> None:
    turns, seen = Turns(), list[str]()

    async def work(name: str) -> None:
        await turns.mine()
        seen.append(name)

    async def ask() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append("-")

    await asyncio.gather(*map(work, "abcdef"), ask())
    assert [name for name in seen if name != "-"] == list("abcdef")
    assert seen.index("-") < seen.index("c")
    assert seen[-1] == "f"


async def test_who_gives_up_waiting_holds_nobody_up() -> None:
    turns, seen = Turns(), list[str]()

    async def work(name: str) -> None:
        await turns.mine()
        seen.append(name)

    tasks = [asyncio.create_task(work(name)) for name in "abc"]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await work("d")
    assert seen == ["c", "d"]
