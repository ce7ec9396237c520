"""Files and exports over ASGI: sent block by block, never read to their end first."""

from __future__ import annotations

import asyncio
import io

import pytest
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.test import AsyncRequestFactory, RequestFactory

from controlplane.access.streaming import BLOCK_BYTES, StreamingMiddleware


def blocks_of(response) -> list[bytes]:
    async def read() -> list[bytes]:
        return [block async for block in response]

    return asyncio.run(read())


def test_an_export_leaves_before_its_last_row_is_read():
    given = []

    def rows():
        for number in range(3):
            given.append(number)
            yield bytes([number]) * BLOCK_BYTES

    passed = StreamingMiddleware(lambda _request: StreamingHttpResponse(rows()))
    response = passed(AsyncRequestFactory().get("/"))

    async def first() -> bytes:
        return await anext(aiter(response))

    assert asyncio.run(first()) == bytes(BLOCK_BYTES)
    assert given == [0]


def test_small_pieces_leave_together_and_unchanged():
    content = bytes(range(256)) * 512
    passed = StreamingMiddleware(lambda _request: FileResponse(io.BytesIO(content)))
    blocks = blocks_of(passed(AsyncRequestFactory().get("/")))
    assert b"".join(blocks) == content
    assert len(blocks) == len(content) // BLOCK_BYTES


@pytest.mark.django_db  # Django looks after its connections when an answer is closed
def test_the_file_is_closed_with_the_answer():
    file = io.BytesIO(b"a")
    passed = StreamingMiddleware(lambda _request: FileResponse(file))
    response = passed(AsyncRequestFactory().get("/"))
    blocks_of(response)
    response.close()
    assert file.closed


def test_other_answers_and_a_server_that_does_not_await_get_what_they_got():
    whole, rows = HttpResponse("a"), StreamingHttpResponse([b"a"])
    passed = StreamingMiddleware(lambda request: whole if request.path == "/w" else rows)
    assert passed(AsyncRequestFactory().get("/w")) is whole
    assert not passed(RequestFactory().get("/")).is_async
