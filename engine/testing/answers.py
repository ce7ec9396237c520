"""Answers to the requests of operators, made one after the other in the thread of the caller.

>>> async def twice(row):
...     return {"n": row["n"] * 2}
>>> answered([Request(1, lambda: twice({"n": 4}))])
[Answer(number=1, value={'n': 8}, error=None, timed_out=False)]
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from engine.operators.asking.requests import Answer, Request


def answered(requests: Iterable[Request]) -> list[Answer]:
    """Run requests to their ends, without any timeout."""
    with asyncio.Runner() as runner:
        return [_answer(runner, request) for request in requests]


def _answer(runner: asyncio.Runner, request: Request) -> Answer:
    try:
        return Answer(request.number, runner.run(request.call()))
    except Exception as error:  # noqa: BLE001  it is the operator that judges it
        return Answer(request.number, error=error)
