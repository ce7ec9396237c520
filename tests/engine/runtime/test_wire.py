"""Frames between two workers."""

import socket
import threading

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.elements import (
    MAX_TIME,
    MIN_TIME,
    AfterBarrier,
    Barrier,
    Batch,
    EndOfInput,
    Idle,
    LatencyMarker,
    Micros,
    SnapshotKind,
    Watermark,
)
from engine.errors import ConnectionLost
from engine.runtime import wire


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    yield wire.tune(left), wire.tune(right)
    left.close()
    right.close()


ELEMENTS = [
    Watermark(MIN_TIME),
    Watermark(Micros(-1)),
    Watermark(MAX_TIME),
    Idle(),
    EndOfInput(),
    LatencyMarker("ab", Micros(1_700_000_000_000_000), 3),
    Barrier(7),
    Barrier(8, SnapshotKind.SAVEPOINT, AfterBarrier.DRAIN, 1_700_000_000_000, "/s/ä b"),
]


@pytest.mark.parametrize("element", ELEMENTS, ids=repr)
def test_an_element_arrives_as_it_was_sent(pair, element):
    wire.send(pair[0], wire.encode(3, element))
    frame = wire.receive(pair[1])
    assert frame.channel == 3
    assert wire.decode(frame) == element


def test_rows_arrive_with_their_types(pair):
    rows = pl.DataFrame(
        {
            "key_group": pl.Series([1, 2], dtype=pl.UInt16),
            "name": ["a", None],
            "at": pl.Series([0, 1], dtype=pl.Datetime("us", "UTC")),
            "value": [0.1, float("nan")],
            "list": [[1], []],
        }
    )
    wire.send(pair[0], wire.encode(0, Batch(rows)))
    element = wire.decode(wire.receive(pair[1]))
    assert isinstance(element, Batch)
    assert_frame_equal(element.frame, rows)


def test_a_frame_larger_than_the_kernels_buffers_arrives_whole(pair):
    rows = pl.DataFrame({"x": range(2_000_000)})
    sender = threading.Thread(target=wire.send, args=(pair[0], wire.encode(1, Batch(rows))))
    sender.start()
    element = wire.decode(wire.receive(pair[1]))
    sender.join()
    assert isinstance(element, Batch)
    assert element.frame["x"].sum() == rows["x"].sum()


def test_frames_arrive_in_order(pair):
    for time in range(100):
        wire.send(pair[0], wire.encode(0, Watermark(Micros(time))))
    times = [wire.decode(wire.receive(pair[1])) for _ in range(100)]
    assert times == [Watermark(Micros(time)) for time in range(100)]


def test_credits_and_hellos_say_what_they_were_given(pair):
    wire.send(pair[0], wire.hello("a" * 32, 3))
    wire.send(pair[0], wire.credit(9, 4))
    assert wire.hello_from(wire.receive(pair[1])) == ("a" * 32, 3)
    frame = wire.receive(pair[1])
    assert (frame.channel, wire.credit_amount(frame)) == (9, 4)


@pytest.mark.parametrize("sent", [0, 5, wire.HEADER.size, wire.HEADER.size + 3])
def test_a_connection_that_ends_anywhere_is_lost(pair, sent):
    frame = wire.encode(0, Watermark(Micros(5)))
    whole = wire.HEADER.pack(len(frame.payload), 0, frame.kind) + frame.payload
    pair[0].sendall(whole[:sent])
    pair[0].close()
    with pytest.raises(ConnectionLost, match="ended: got"):
        wire.receive(pair[1])


def test_writing_to_a_peer_that_is_gone_is_a_loss(pair):
    pair[1].close()
    with pytest.raises(ConnectionLost, match="broke while writing"):
        wire.send(pair[0], wire.encode(0, Idle()))
