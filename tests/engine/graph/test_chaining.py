"""Chains and edges that the author asked for."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine.connectors.print import PrintSink
from engine.graph.jobgraph import Partitioning
from engine.testing.memory import MemorySource

ROWS = MemorySource({"all": pl.DataFrame(schema={"a": pl.Int64(), "b": pl.Int64()})})


@pytest.fixture
def env():
    return hw.Environment("chains")


def chains(env):
    return [[operator.uid for operator in vertex.operators] for vertex in env.graph().vertices]


def edges(env):
    return [edge.partitioning for edge in env.graph().edges]


def steps(env, change):
    """source, first, middle, last and sink, with something done to the middle one."""
    middle = env.source(ROWS, uid="source").drop("b", uid="first").with_columns(c=1, uid="middle")
    change(middle).drop("c", uid="last").sink(PrintSink(), uid="sink")


def test_steps_share_a_chain_when_nothing_is_said(env):
    steps(env, lambda middle: middle)
    assert chains(env) == [["source", "first", "middle", "last", "sink"]]


def test_a_new_chain_begins_with_the_step_that_starts_it(env):
    steps(env, lambda middle: middle.start_new_chain())
    assert chains(env) == [["source", "first"], ["middle", "last", "sink"]]
    assert edges(env) == [Partitioning.FORWARD]


def test_a_step_without_chaining_is_alone(env):
    steps(env, lambda middle: middle.disable_chaining())
    assert chains(env) == [["source", "first"], ["middle"], ["last", "sink"]]


def test_every_step_is_alone_when_the_environment_says_so(env):
    env.disable_chaining()
    steps(env, lambda middle: middle)
    assert chains(env) == [["source"], ["first"], ["middle"], ["last"], ["sink"]]


def test_a_sink_may_have_a_thread_of_its_own(env):
    rows = env.source(ROWS, uid="source")
    rows.sink(PrintSink(), uid="slow", chained=False).sink(PrintSink(), uid="fast")
    assert chains(env) == [["source", "fast"], ["slow"]]


@pytest.mark.parametrize("how", ["rebalance", "rescale", "broadcast"])
def test_rows_that_are_dealt_out_begin_a_chain(env, how):
    steps(env, lambda middle: getattr(middle, how)())
    assert chains(env) == [["source", "first", "middle"], ["last", "sink"]]
    assert edges(env) == [Partitioning(how)]


def test_rows_that_go_forward_stay_in_their_chain(env):
    steps(env, lambda middle: middle.forward())
    assert chains(env) == [["source", "first", "middle", "last", "sink"]]


def test_a_shuffle_follows_rows_that_are_dealt_out(env):
    class Keeps(hw.KeyedProcessFunction):
        def process(self, row, ctx):
            return [row]

    keyed = env.source(ROWS, uid="source").rebalance().key_by("a")
    keyed.process(Keeps(), uid="keeps").sink(PrintSink(), uid="sink")
    assert chains(env) == [["source"], ["keeps.key"], ["keeps", "sink"]]
    assert edges(env) == [Partitioning.REBALANCE, Partitioning.HASH]
