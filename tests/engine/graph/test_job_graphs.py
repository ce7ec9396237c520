"""Job graphs: what is chained, what is an edge, and what stays the same between versions."""

from __future__ import annotations

import cloudpickle
import polars as pl
import pytest

import engine as hw
from engine import agg, windows
from engine.connectors.print import PrintSink
from engine.errors import ConfigError
from engine.graph.jobgraph import Partitioning
from engine.graph.plan import OperatorKind, Plan, plan_of
from engine.testing.memory import MemorySource

READINGS = pl.DataFrame(schema={"sensor": pl.String(), "value": pl.Float64(), "time": pl.Int64()})
TIME = hw.bounded_out_of_orderness("1s", column="time")


class Keeps(hw.CoProcessFunction):
    factor = hw.ValueState(float, default=1.0)

    def process_left(self, row, ctx):
        return [row]

    def process_right(self, row, ctx):
        return None


def sensors(env, uid="sensors", **options):
    return env.source(MemorySource({"all": READINGS}), uid=uid, watermarks=TIME, **options)


def sink():
    return PrintSink()


def summed(stream, uid="sums", **options):
    windowed = stream.key_by("sensor").window(windows.tumbling("1s"))
    return windowed.agg(total=agg.sum("value"), uid=uid, **options)


def demo(parallelism=1, interval="1s"):
    env = hw.Environment("sensors", parallelism=parallelism, checkpoint_interval=interval)
    readings = sensors(env)
    readings.sink(sink(), uid="raw")
    control = sensors(env, "control").filter(pl.col("value") > 0)
    keyed = readings.key_by("sensor")
    amplified = keyed.connect(control.key_by("sensor")).process(Keeps(), uid="amplifier")
    summed(amplified).sink(sink(), uid="out")
    return env.graph()


def chains(graph):
    return [[chained.uid for chained in vertex.operators] for vertex in graph.vertices]


def test_rows_are_handed_over_by_a_channel_only_at_a_shuffle():
    graph = demo()
    assert chains(graph) == [
        ["sensors", "raw", "amplifier.left"],
        ["control", "filter-1", "amplifier.right"],
        ["amplifier", "sums.partial"],
        ["sums", "out"],
    ]
    assert [(edge.partitioning, edge.port, edge.keys) for edge in graph.edges] == [
        (Partitioning.HASH, 0, ("sensor",)),
        (Partitioning.HASH, 1, ("sensor",)),
        (Partitioning.HASH, 0, ("sensor",)),
    ]


def test_vertices_come_after_the_vertices_that_feed_them():
    graph = demo()
    order = [vertex.id for vertex in graph.vertices]
    assert all(order.index(edge.source) < order.index(edge.target) for edge in graph.edges)


def test_chained_operators_are_fed_by_earlier_ones():
    source, control, *_ = demo().vertices
    assert [[feed.operator for feed in o.feeds] for o in source.operators] == [[], [0], [0]]
    assert [[feed.operator for feed in o.feeds] for o in control.operators] == [[], [0], [1]]


def test_another_parallelism_breaks_the_chain_and_deals_rows_out():
    env = hw.Environment("sensors")
    sensors(env, parallelism=1).filter(pl.col("value") > 0, parallelism=2).sink(
        sink(), uid="out", parallelism=2
    )
    graph = env.graph()
    assert chains(graph) == [["sensors"], ["filter-1", "out"]]
    assert [edge.partitioning for edge in graph.edges] == [Partitioning.REBALANCE]


def test_a_union_of_one_vertex_is_chained_and_of_two_is_not():
    env = hw.Environment("sensors")
    left, right = sensors(env), sensors(env, "more")
    left.filter(pl.col("value") > 0).union(left.filter(pl.col("value") < 0)).sink(sink(), uid="a")
    left.union(right).sink(sink(), uid="b")
    graph = env.graph()
    assert chains(graph) == [["sensors", "filter-1", "filter-2", "a"], ["more"], ["b"]]
    feeds = graph.vertices[0].operators[3].feeds
    assert [feed.operator for feed in feeds] == [1, 2]
    assert [edge.partitioning for edge in graph.edges] == [Partitioning.FORWARD] * 2


def test_a_window_over_a_union_shuffles_once():
    env = hw.Environment("sensors")
    summed(sensors(env).union(sensors(env, "more"))).sink(sink(), uid="out")
    graph = env.graph()
    assert chains(graph) == [["sensors"], ["more"], ["sums.partial"], ["sums", "out"]]


def test_late_rows_leave_under_their_tag():
    env = hw.Environment("sensors")
    sums = summed(sensors(env))
    sums.sink(sink(), uid="out")
    sums.side_output("late").sink(sink(), uid="late")
    operators = env.graph().vertices[0].operators
    assert operators[-1].uid == "late"
    assert operators[-1].feeds[0].tag == "late"


def test_parallelism_changes_neither_ids_nor_the_hash_of_the_plan():
    one, three = demo(1), demo(3)
    assert [vertex.id for vertex in one.vertices] == [vertex.id for vertex in three.vertices]
    assert plan_of(one).hash == plan_of(three).hash


def test_the_hash_of_the_plan_tells_another_state():
    env = hw.Environment("sensors")
    windowed = sensors(env).key_by("sensor").window(windows.tumbling("1s"))
    windowed.agg(total=agg.sum("value"), n=agg.count(), uid="sums").sink(sink(), uid="out")
    other = hw.Environment("sensors")
    summed(sensors(other)).sink(sink(), uid="out")
    assert plan_of(env.graph()).hash != plan_of(other.graph()).hash


def test_a_plan_survives_json():
    plan = plan_of(demo(2))
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.checkpoint_interval_ms == 1000
    assert plan_of(demo(interval=None)).checkpoint_interval_ms is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format_version": 2}'])
def test_a_damaged_plan_is_refused(text):
    with pytest.raises(ConfigError, match="plan cannot be read"):
        Plan.from_json(text)


def test_a_plan_says_which_state_each_operator_keeps():
    operators = {operator.uid: operator for operator in plan_of(demo()).operators}
    assert [operators[uid].kind for uid in ("sensors", "filter-1", "raw")] == list(OperatorKind)
    [factor] = operators["amplifier"].states
    assert (factor.name, factor.kind) == ("factor", "value")
    assert (factor.keys, factor.values) == ({"sensor": "String"}, {"value": "Float64"})
    [slices] = operators["sums"].states
    assert slices.kind == "runs"
    assert slices.values["total.0"] == "Int64"
    assert operators["sums"].description["window"] == "tumbling 1s"


def test_state_under_an_automatic_uid_is_a_warning():
    env = hw.Environment("sensors")
    summed(sensors(env), uid=None).sink(sink())
    assert [warning.split(" keeps ")[0] for warning in env.graph().warnings] == [
        "window_aggregate 'window_aggregate-1'",
        "sink 'sink-1'",
    ]
    assert plan_of(demo()).warnings == ()


def test_automatic_uids_do_not_change_when_a_step_with_a_uid_is_added():
    env = hw.Environment("sensors")
    sensors(env).drop("time", uid="mine").drop("value").sink(sink(), uid="out")
    assert chains(env.graph()) == [["sensors", "mine", "project-1", "out"]]


def test_a_graph_survives_pickling():
    graph = cloudpickle.loads(cloudpickle.dumps(demo()))
    assert plan_of(graph) == plan_of(demo())
