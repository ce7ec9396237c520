"""Mailboxes, and channels that never hold more than their credits allow."""

import socket
import threading

import pytest

from engine.elements import Idle, Micros, Watermark
from engine.runtime.channels import (
    CREDIT_LOT,
    Connection,
    Endpoint,
    IncomingConnection,
    LocalChannel,
    OutgoingConnection,
    RemoteInput,
    RemoteOutput,
)
from engine.runtime.mailbox import Mailbox
from engine.testing.cluster import PATIENCE_S


def never(_channel):
    return False


def drain(mailbox, blocked=never):
    taken = []
    while found := mailbox.take_input(blocked):
        taken.append(found)
    return taken


def test_elements_of_a_channel_keep_their_order_and_channels_take_turns():
    mailbox = Mailbox(inputs=2, outputs=0, capacity=4)
    for time in (1, 2, 3):
        mailbox.put(0, Watermark(Micros(time)))
    mailbox.put(1, Idle())
    assert [channel for channel, _ in drain(mailbox)] == [0, 1, 0, 0]


def test_a_blocked_channel_keeps_its_elements():
    mailbox = Mailbox(inputs=2, outputs=0, capacity=4)
    mailbox.put(0, Idle())
    mailbox.put(1, Idle())
    assert drain(mailbox, blocked=lambda channel: channel == 0) == [(1, Idle())]
    assert drain(mailbox) == [(0, Idle())]


def test_credits_can_be_spent_once_each():
    mailbox = Mailbox(inputs=0, outputs=1, capacity=2)
    assert [mailbox.spend(0) for _ in range(3)] == [True, True, False]
    mailbox.grant(0, 1)
    assert [mailbox.spend(0) for _ in range(2)] == [True, False]


def test_commands_run_in_the_order_in_which_they_were_posted():
    mailbox, ran = Mailbox(0, 0, 1), []
    for number in range(3):
        mailbox.post(lambda number=number: ran.append(number))
    for command in mailbox.take_commands():
        command()
    assert ran == [0, 1, 2]
    assert mailbox.take_commands() == []


@pytest.mark.parametrize(
    "happens",
    [
        lambda mailbox: mailbox.post(lambda: None),
        lambda mailbox: mailbox.put(0, Idle()),
        lambda mailbox: mailbox.spend(0) and mailbox.grant(0, 1),
    ],
    ids=["command", "element", "credit"],
)
def test_what_happens_before_a_wait_is_not_slept_through(happens):
    mailbox = Mailbox(1, 1, 1)
    mailbox.take_commands()
    happens(mailbox)
    mailbox.wait(None)


def test_a_credit_wakes_only_an_owner_that_has_none_left():
    mailbox = Mailbox(0, 1, capacity=2)
    mailbox.spend(0)
    mailbox.grant(0, 1)
    assert not mailbox.wait(0)
    mailbox.spend(0)
    mailbox.spend(0)
    mailbox.grant(0, 1)
    assert mailbox.wait(0)


def test_a_local_channel_gives_its_credit_back_when_the_element_is_taken():
    source, target = Mailbox(0, 1, capacity=1), Mailbox(1, 0, capacity=1)
    channel = LocalChannel(Endpoint(source, 0), Endpoint(target, 0))
    assert source.spend(0)
    channel.send(Idle())
    assert not source.spend(0)
    assert drain(target) == [(0, Idle())]
    channel.taken()
    assert source.spend(0)


@pytest.fixture
def remote():
    """Channel 7 between two workers: sender's mailbox and output, receiver's mailbox and input."""
    left, right = socket.socketpair()
    lost = threading.Event()
    here, there = (Connection(end, lambda _: lost.set()) for end in (left, right))
    source, target = Mailbox(0, 1, capacity=2 * CREDIT_LOT), Mailbox(1, 0, capacity=2 * CREDIT_LOT)
    outgoing = OutgoingConnection(here, {7: Endpoint(source, 0)})
    incoming = IncomingConnection(there, {7: Endpoint(target, 0)})
    outgoing.start("credits")
    incoming.start("elements")
    yield source, RemoteOutput(outgoing, 7), target, RemoteInput(incoming, 7)
    assert not lost.is_set()
    here.close()
    there.close()


def test_a_remote_channel_never_holds_more_than_its_capacity(remote):
    source, output, target, input_ = remote
    received, total = [], 100
    for time in range(total):
        while not source.spend(0):
            source.take_commands()
            while found := target.take_input(never):
                received.append(found[1].time)
                input_.taken()
            target.take_commands()
            source.wait(0.05)
        output.send(Watermark(Micros(time)))
        assert time - len(received) < 2 * CREDIT_LOT
    while len(received) < total:
        target.take_commands()
        while found := target.take_input(never):
            received.append(found[1].time)
        target.wait(0.05)
    assert received == list(range(total))


def test_a_lost_peer_is_told_once():
    left, right = socket.socketpair()
    losses, told = [], threading.Event()

    def on_lost(lost):
        losses.append(lost)
        told.set()

    Connection(left, on_lost).start(lambda _: None, "reader")
    right.close()
    assert told.wait(PATIENCE_S)
    left.close()
    assert len(losses) == 1
