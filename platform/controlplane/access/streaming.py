"""Answers that are sent while they are read: files and exports, over ASGI.

    view ─▶ iterator of small pieces ─▶ blocks of 64 KiB, each read in a thread ─▶ socket

Without it Django reads such an answer to its end before the first byte leaves, and warns of it.

Guarantee  no more than one block is in memory, and the event loop waits for no file and no query.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

BLOCK_BYTES = 65_536
"""A hop to a thread costs as much as reading some of these."""

Handler = Callable[[HttpRequest], HttpResponseBase]


class StreamingMiddleware:
    """Let what streams be awaited where the server awaits."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Leave every other answer as it is."""
        response = self.get_response(request)
        if not isinstance(request, ASGIRequest) or not response.streaming:
            return response
        streamed = cast("StreamingHttpResponse", response)
        if not streamed.is_async:
            pieces = cast("Iterator[bytes]", streamed.streaming_content)
            cast("Any", streamed).streaming_content = _blocks(pieces)
        return streamed


async def _blocks(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while block := await sync_to_async(_block)(pieces):
        yield block


def _block(pieces: Iterator[bytes]) -> bytes:
    """The next pieces, up to a block; nothing at the end."""
    read = bytearray()
    for piece in pieces:
        read += piece
        if len(read) >= BLOCK_BYTES:
            break
    return bytes(read)
