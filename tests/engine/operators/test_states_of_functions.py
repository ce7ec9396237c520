"""List, map, reducing and aggregating states and their TTL, against a row-by-row definition."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as hw
from engine.errors import ConfigError, FunctionError, GraphError
from engine.operators.records.keyed_process import KeyedProcess
from engine.state.budget import Budget
from engine.state.memory import MemoryBackend
from engine.state.rocks import RocksBackend
from engine.testing.harness import OperatorHarness

IN = {"user": pl.String(), "do": pl.String(), "n": pl.Int64(), "event_time": pl.Int64()}
OUT = {"user": pl.String(), "seen": pl.String(), "event_time": pl.Int64()}
TTL = 10


class Mean(hw.AggregateFunction):
    accumulator = {"n": int, "total": float}

    def create(self):
        return 0, 0.0

    def add(self, value, accumulator):
        return accumulator[0] + 1, accumulator[1] + value

    def result(self, accumulator):
        return accumulator[1] / accumulator[0]


class Remembers(hw.KeyedProcessFunction):
    """Does what the row says, and shows everything."""

    recent = hw.ListState(int)
    counts = hw.MapState(str, int)
    most = hw.ReducingState(int, max)
    mean = hw.AggregatingState(Mean())
    brief = hw.ValueState(int, ttl=TTL)
    briefs = hw.ListState(int, ttl=TTL)
    brief_counts = hw.MapState(int, int, ttl=hw.Ttl(TTL, refresh_on_read=True))
    brief_mean = hw.AggregatingState(Mean(), ttl=TTL)

    def process(self, row, ctx):
        n = row["n"]
        match row["do"]:
            case "add":
                self.recent.add(n)
                self.counts.put(str(n), self.counts.get(str(n), 0) + 1)
                self.most.add(n)
                self.mean.add(n)
                self.brief.set(n)
                self.briefs.add(n)
                self.brief_counts.put(n, self.brief_counts.get(n, 0) + 1)
                self.brief_mean.add(n)
            case "trim":
                self.recent.update(self.recent.get()[-2:])
                self.counts.remove(str(n))
            case "clear":
                for state in (self.recent, self.counts, self.most, self.mean):
                    state.clear()
        shown = (
            self.recent.get(),
            self.counts.items(),
            self.most.get(),
            self.mean.get(),
            self.brief.get(),
            self.briefs.get(),
            self.brief_counts.get(n),
            self.brief_mean.get(),
        )
        yield {"user": row["user"], "seen": repr(shown)}


class Model:
    """The same, with plain Python objects and the time of each write."""

    def __init__(self):
        self.recent, self.counts, self.values = [], {}, []
        self.brief, self.briefs, self.brief_counts, self.brief_mean = None, [], {}, None

    def shown(self, do, n, now):
        alive = lambda item: item is not None and now < item[-1] + TTL  # noqa: E731
        count = self.brief_counts.get(n)
        match do:
            case "add":
                self.recent.append(n)
                self.counts[str(n)] = self.counts.get(str(n), 0) + 1
                self.values.append(n)
                self.brief = n, now
                self.briefs.append((n, now))
                self.brief_counts[n] = (count[0] if alive(count) else 0) + 1, now
                before = self.brief_mean[0] if alive(self.brief_mean) else []
                self.brief_mean = [*before, n], now
            case "trim":
                self.recent = self.recent[-2:]
                self.counts.pop(str(n), None)
            case "clear":
                self.recent, self.counts, self.values = [], {}, []
        count = self.brief_counts.get(n)
        if alive(count):
            self.brief_counts[n] = count[0], max(now, count[1])
        mean = self.brief_mean[0] if alive(self.brief_mean) else None
        return (
            self.recent,
            sorted(self.counts.items()),
            max(self.values, default=None),
            sum(self.values) / len(self.values) if self.values else None,
            self.brief[0] if alive(self.brief) else None,
            [value for value, written in self.briefs if now < written + TTL],
            count[0] if alive(count) else None,
            sum(mean) / len(mean) if mean else None,
        )


def remembers(subtask=0, parallelism=1, restored=(), backend=MemoryBackend):
    operator = KeyedProcess(Remembers(), "Remembers", {"user": pl.String()}, OUT)
    return OperatorHarness(
        operator,
        keys=["user"],
        subtask=subtask,
        parallelism=parallelism,
        restored=restored,
        new_backend=backend,
    )


def run(script, backend=MemoryBackend):
    """`script`: rows with a time, "cut" ends a batch and lets event time go on, numbers rescale."""
    subtasks, done, batch, watermark = [remembers(backend=backend)], [], [], 0

    def collect():
        return [row for each in subtasks for row in each.outputs["main"]]

    for step in [*script, "cut"]:
        if isinstance(step, tuple):
            batch.append(step)
            continue
        for each in subtasks:
            each.push(pl.DataFrame(batch, IN, orient="row"))
        watermark = max([watermark, *(row[3] for row in batch)])
        batch = []
        if step == "cut":
            for each in subtasks:
                each.advance(watermark)
        else:
            done += collect()
            restored = [each.snapshot() for each in subtasks]
            subtasks = [remembers(index, step, restored, backend) for index in range(step)]
    rows = done + collect()
    return sorted((row["event_time"], row["user"], row["seen"]) for row in rows)


def model(script):
    users, rows = {}, []
    for step in script:
        if isinstance(step, tuple):
            user, do, n, now = step
            seen = users.setdefault(user, Model()).shown(do, n, now)
            rows.append((now, user, repr(seen)))
    return sorted(rows)


def timed(steps):
    """Give the rows times that go on by what each says."""
    now, script = 0, []
    for step in steps:
        if isinstance(step, tuple):
            now += step[3]
            step = *step[:3], now
        script.append(step)
    return script


users = st.sampled_from(["ann", "bob", "eve"])
deeds = st.sampled_from(["add", "add", "add", "trim", "clear", "look"])
events = st.tuples(users, deeds, st.integers(0, 2), st.integers(1, 6))
scripts = st.lists(events | events | st.just("cut") | st.integers(1, 3), max_size=25).map(timed)


@given(scripts)
@settings(max_examples=40, deadline=None)
def test_states_equal_their_definition_through_any_batches_crashes_and_rescales(script):
    assert run(script) == model(script)


def on_disk(groups):
    """Hardly any memory: a map of two entries is a large one."""
    return RocksBackend(
        groups, budget=Budget(2**20, write_buffer_ratio=0.5, block_cache_ratio=0.499)
    )


@given(scripts)
@settings(max_examples=4, deadline=None)
def test_states_on_disk_equal_it_too(script):
    assert run(script, on_disk) == model(script)


@pytest.mark.parametrize(("watermark", "left"), [(15, 1), (16, 0)])
def test_on_disk_what_nobody_can_see_is_removed_at_most_a_quarter_of_the_ttl_late(watermark, left):
    harness = remembers(backend=RocksBackend)
    harness.push([{"user": "ann", "do": "add", "n": 7, "event_time": 5}])
    harness.advance(watermark)
    tables = harness.snapshot().tables
    kept = [tables[name].height for name in ("brief", "briefs", "brief_counts", "brief_mean")]
    assert kept == [left] * 4


def test_a_snapshot_has_a_row_per_element_and_per_entry():
    harness = remembers()
    harness.push([{"user": "ann", "do": "add", "n": n, "event_time": 5} for n in (7, 3, 7)])
    tables = harness.snapshot().tables
    group = tables["recent"]["key_group"][0]
    assert tables["recent"].rows() == [
        (group, "ann", 0, 7),
        (group, "ann", 1, 3),
        (group, "ann", 2, 7),
    ]
    assert tables["recent"].columns == ["key_group", "user", "index", "value"]
    assert tables["counts"].rows() == [(group, "ann", "3", 1), (group, "ann", "7", 2)]
    assert tables["counts"].columns == ["key_group", "user", "map_key", "value"]
    assert tables["mean"].rows() == [(group, "ann", 3, 17.0)]
    assert tables["mean"].columns == ["key_group", "user", "n", "total"]
    assert tables["brief"].rows() == [(group, "ann", 7, 5)]


@pytest.mark.parametrize(("watermark", "left"), [(14, 1), (15, 0)])
def test_what_no_row_can_see_any_more_is_removed_also_after_a_restore(watermark, left):
    first = remembers()
    first.push([{"user": "ann", "do": "add", "n": 7, "event_time": 5}])
    second = remembers(restored=[first.snapshot()])
    for harness in (first, second):
        harness.advance(watermark)
        tables = harness.snapshot().tables
        kept = [tables[name].height for name in ("brief", "briefs", "brief_counts", "brief_mean")]
        assert kept == [left] * 4
        assert tables["recent"].height == 1


def test_a_late_row_sees_what_the_watermark_that_it_came_behind_left():
    """Else it would depend on the batch whether the value had been removed."""
    harness = remembers()
    harness.push([{"user": "ann", "do": "add", "n": 7, "event_time": 5}])
    harness.push([{"user": "ann", "do": "look", "n": 7, "event_time": 6, "row_watermark": 15}])
    assert harness.outputs["main"][-1]["seen"] == "([7], [('7', 1)], 7, 7.0, None, [], None, None)"


class Forgets(hw.KeyedProcessFunction):
    last = hw.ValueState(int, ttl=hw.Ttl(TTL, domain="processing_time"))

    def process(self, row, ctx):
        yield {"user": row["user"], "seen": repr(self.last.get())}
        self.last.set(row["n"])


def test_a_ttl_of_processing_time_goes_by_the_clock():
    operator = KeyedProcess(Forgets(), "Forgets", {"user": pl.String()}, OUT)
    harness = OperatorHarness(operator, keys=["user"])
    row = {"user": "ann", "n": 1, "event_time": 0}
    for now in (100, 109, 119):
        harness.tick(now)
        harness.push([row])
    assert [row["seen"] for row in harness.outputs["main"]] == ["None", "1", "None"]
    harness.tick(129)
    assert harness.snapshot().tables["last"].height == 0


def test_a_frozen_list_does_not_see_what_comes_later():
    harness = remembers()
    harness.push([{"user": "ann", "do": "add", "n": 1, "event_time": 1}])
    frozen = {each.descriptor.name: each for each in harness._backend.freeze()}
    harness.push([{"user": "ann", "do": "add", "n": 2, "event_time": 2}])
    assert frozen["recent"].table()["value"].to_list() == [1]
    assert frozen["counts"].table()["map_key"].to_list() == ["1"]


MISTAKES = {
    "list of lists": (lambda: hw.ListState(pl.List(pl.Int64)), "state cannot hold List"),
    "float map key": (lambda: hw.MapState(float, int), "map state cannot have keys of Float64"),
    "no reduce": (
        lambda: hw.ReducingState(int, 3),
        "reducing state needs a function of two values",
    ),
    "no aggregate": (lambda: hw.AggregatingState(Mean), "aggregating state needs an Aggregate"),
    "no ttl": (lambda: hw.ValueState(int, ttl=0), "ttl must be positive: got 0"),
    "odd ttl": (lambda: hw.ValueState(int, ttl="soon"), "ttl is not a length of time: got 'soon'"),
    "odd clock": (lambda: hw.Ttl("1s", domain="wall"), "unknown time domain: got 'wall'"),
}


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_state_that_cannot_be_is_refused_where_it_is_declared(mistake, sentence):
    with pytest.raises((GraphError, ConfigError), match=sentence):
        mistake()


class Breaks(hw.KeyedProcessFunction):
    numbers = hw.ListState(int)
    named = hw.MapState(str, int)
    mean = hw.AggregatingState(Mean())

    def __init__(self, deed):
        self.deed = deed

    def process(self, row, ctx):
        self.deed(self)


@pytest.mark.parametrize(
    ("deed", "sentence"),
    [
        (lambda f: f.numbers.add("x"), "state 'numbers' holds Int64: got 'x'"),
        (lambda f: f.named.put(None, 1), "map state cannot have the key None"),
        (lambda f: f.named.get(3), "state 'named' holds String: got 3"),
        (lambda f: f.mean.add("x"), "raised TypeError"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_at_its_row(deed, sentence):
    operator = KeyedProcess(Breaks(deed), "Breaks", {"user": pl.String()}, OUT)
    with pytest.raises(FunctionError, match=sentence):
        OperatorHarness(operator, keys=["user"]).push([{"user": "ann", "n": 1, "event_time": 0}])
