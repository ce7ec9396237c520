"""The table of peers: what counts as right, and what is compared."""

from __future__ import annotations

import pytest

from benchmarks.peers.__main__ import names
from benchmarks.peers.catalog import PEERS, PeerError, pinned
from benchmarks.peers.scripts.panes import Panes
from benchmarks.peers.table import Score, line, ratio, wrong
from benchmarks.peers.totals import expected, running, totals
from benchmarks.peers.work import BEGAN, BOUND, GAP, SIZE, SLIDE, WORKS, Work, write_lines

ROWS = 3_000
RIGHT = totals([(1, BEGAN, 2, 5.0), (2, BEGAN + SIZE, 1, 7.0)])


def rows_of(name: str, keys: int) -> tuple[Work, list[tuple[int, int, float]]]:
    work = Work(name, ours=0, keys=keys)
    columns = (column.tolist() for column in work.events(0, ROWS))
    return work, list(zip(*columns, strict=True))


def test_the_order_of_results_does_not_matter():
    assert totals([(2, BEGAN + SIZE, 1, 7.0), (1, BEGAN, 2, 5.0)]) == RIGHT


@pytest.mark.parametrize(
    "results",
    [
        [(1, BEGAN, 2, 5.0)],
        [(1, BEGAN, 1, 5.0), (2, BEGAN + SIZE, 1, 7.0)],
        [(1, BEGAN, 2, 5.0), (2, BEGAN + SIZE, 1, 8.0)],
        [(1, BEGAN, 2, 5.0), (2, BEGAN, 1, 7.0)],
        [(2, BEGAN, 2, 5.0), (1, BEGAN + SIZE, 1, 7.0)],
        [],
    ],
)
def test_an_output_that_lacks_or_changes_something_is_wrong(results):
    assert wrong(totals(results), RIGHT).startswith("the output is wrong: ")


def test_a_right_output_has_no_failure():
    assert wrong(RIGHT, RIGHT) == ""


def test_the_ratio_compares_rows_a_second():
    ours = Score("headwater", "tumbling", rows=1_000, seconds=1.0)
    peer = Score("peer", "tumbling", rows=100, seconds=2.0)
    assert ratio(ours, peer) == 20.0


def test_a_wrong_output_has_neither_speed_nor_ratio():
    ours = Score("headwater", "tumbling", rows=1_000, seconds=1.0)
    peer = Score("peer", "tumbling", 100, seconds=2.0, failure="the output is wrong: rows is 7")
    assert peer.rows_per_second is None
    assert ratio(ours, peer) is None
    assert line(peer, ours).endswith("100  the output is wrong: rows is 7")


def test_a_peer_is_not_compared_with_a_wrong_output_of_ours():
    ours = Score("headwater", "tumbling", 1_000, seconds=1.0, failure="the output is wrong: …")
    assert ratio(ours, Score("peer", "tumbling", rows=100, seconds=2.0)) is None


def test_tumbling_totals_are_those_of_a_loop_over_rows():
    work, rows = rows_of("tumbling", keys=7)
    panes = Panes()
    found = [result for row in rows for result in panes.add(*row)]
    assert totals([*found, *panes.rest()]) == expected(work, ROWS)


def test_sliding_totals_are_those_of_a_loop_over_rows():
    work, rows = rows_of("sliding", keys=3)
    cells: dict[tuple[int, int], list[float]] = {}
    for key, time, value in rows:
        last = time // SIZE * SIZE
        for start in range(last - SLIDE + SIZE, last + SIZE, SIZE):
            cells.setdefault((key, start), []).append(value)
    found = [(key, start, len(all_), sum(all_)) for (key, start), all_ in cells.items()]
    assert totals(found) == expected(work, ROWS)


def test_session_totals_are_those_of_a_loop_over_rows():
    work, rows = rows_of("session", keys=20_000)
    found: list[list[float]] = []
    for key, time, value in sorted(rows):
        if found and found[-1][0] == key and time - found[-1][4] <= GAP:
            found[-1][2:] = [found[-1][2] + 1, found[-1][3] + value, time]
        else:
            found.append([key, time, 1, value, time])
    assert len(found) > 500  # most keys have one, some have two
    assert totals(tuple(row[:4]) for row in found) == expected(work, ROWS)


def test_running_totals_are_those_of_a_loop_over_rows():
    work, rows = rows_of("running", keys=7)
    sums = dict.fromkeys(range(7), 0.0)
    found = []
    for key, _, value in rows:
        sums[key] += value
        found.append(sums[key])
    assert running((key for key, *_ in rows), found) == expected(work, ROWS)


@pytest.mark.parametrize("cut", [1, 999, 250_000, 250_001])
def test_events_do_not_depend_on_how_they_are_cut(cut):
    work = WORKS["tumbling"]
    whole = work.events(0, 260_000)
    parts = zip(work.events(0, cut), work.events(cut, 260_000), strict=True)
    for column, (before, after) in zip(whole, parts, strict=True):
        assert column.tolist() == [*before.tolist(), *after.tolist()]


def test_no_event_is_late():
    _, times, _ = WORKS["tumbling"].events(0, 260_000)
    latest = times[0]
    for time in times.tolist():
        assert time > latest - BOUND
        latest = max(latest, time)


def test_lines_are_the_events(tmp_path):
    write_lines(WORKS["json"], 2, tmp_path / "events.jsonl")
    keys, times, values = WORKS["json"].events(0, 2)
    first = (tmp_path / "events.jsonl").read_text().splitlines()[0]
    assert first == f'{{"key":"{keys[0]}","time":{times[0]},"value":{values[0]}}}'


def test_every_peer_is_pinned_and_does_known_work():
    for peer in PEERS:
        assert peer.version[0].isdigit()
        assert set(peer.works) <= set(WORKS)


def test_a_peer_without_a_version_is_refused():
    with pytest.raises(PeerError, match="csp is not pinned in its requirements; write csp==<"):
        pinned("csp", "numpy==2.4.6\n")


def test_unknown_names_are_refused():
    with pytest.raises(SystemExit, match="unknown name 'flnk': choose from bytewax, csp"):
        names(["bytewax", "csp"], "csp,flnk")
