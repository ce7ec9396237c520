"""The Java bytes of a failure, which Flink's command line must be able to read."""

from __future__ import annotations

import base64

import pytest

from engine.rest.render.java import MAX_MESSAGE_BYTES, serialized_throwable
from flink_captures import capture


def test_the_bytes_are_those_of_a_real_flink() -> None:
    recorded = capture("failure_cause_minimal")["serialized-throwable"]
    assert serialized_throwable("MSGMSGMSG") == recorded


@pytest.mark.parametrize("message", ["", "x" * 100_000, "naïve Größe ▶", "nul \0 and 😀"])
def test_any_message_gives_consistent_lengths(message: str) -> None:
    data = base64.b64decode(serialized_throwable(message))
    inner = data.index(b"\xac\xed\x00\x05", 4)
    assert int.from_bytes(data[inner - 4 : inner], "big") == len(data) - inner
    assert len(data) < 4 * MAX_MESSAGE_BYTES
    assert b"\x00\xf0\x9f" not in data
