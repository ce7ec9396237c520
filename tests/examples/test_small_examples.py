"""The small examples, each run to its end in one thread: what they print is what they promise."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import ArtifactError
from engine.graph.jobgraph import JobGraph
from engine.stream import capture
from engine.testing.memory import OutputTables
from engine.testing.simulation import CALM, simulate
from examples.truth import EXAMPLES

Rows = list[dict[str, object]]
Run = Callable[..., dict[str, Rows]]

PRINTED = re.compile(r"(?P<label>\w*?):?\d+> (?P<row>.*)")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run an example; give the rows it printed, by the label of the sink."""

    def run(file: str, *args: str) -> dict[str, Rows]:
        def build(parallelism: int, _: OutputTables) -> JobGraph:
            return capture(EXAMPLES / file, args, {"parallelism.default": str(parallelism)})

        simulate(build, seed=0, chaos=CALM)
        printed: dict[str, Rows] = {}
        for line in capsys.readouterr().out.splitlines():
            found = PRINTED.fullmatch(line)
            assert found is not None, line
            printed.setdefault(found["label"], []).append(json.loads(found["row"]))
        return printed

    return run


def test_words_counts_each_word_of_an_hour(run: Run) -> None:
    counts = {(row["window_start"], row["word"]): row["n"] for row in run("words.py")[""]}
    first = "2026-01-01T00:00:00+00:00"
    assert counts == {(first, word): 2 for word in ("a", "is", "not", "step")}


def test_orders_sets_foreign_ones_aside_and_counts_items(run: Run) -> None:
    printed = run("orders.py")
    assert [row["order"] for row in printed["foreign"]] == [2]
    sold = [(row["item"], row["pieces"], row["turnover"]) for row in printed["sold"]]
    assert sold == [("cup", 1, 9), ("tea", 3, 12), ("cup", 1, 8)]


def test_orders_sql_leaves_cancelled_ones_out(run: Run) -> None:
    rows = [(row["amount"], row["size"], row["tax"]) for row in run("orders_sql.py")[""]]
    assert rows == [(12.0, "small", 2.4), (480.0, "large", 91.2), (3.5, "small", 0.7)]


def test_visits_counts_the_lines_of_both_servers_by_minute(run: Run) -> None:
    rows = run("visits.py")[""]
    assert sum(int(str(row["visits"])) for row in rows) == 36
    first = {row["page"]: row for row in rows if "08:00" in str(row["window_start"])}
    counts = {page: (row["visits"], row["slowest_ms"]) for page, row in first.items()}
    assert counts == {"/": (5, 80), "/prices": (4, 81), "/docs": (3, 28)}


def test_meters_takes_an_hour_for_complete_when_it_is_said(run: Run) -> None:
    printed = run("meters.py")
    sums = [(str(row["window_start"])[11:16], row["meter"], row["kwh"]) for row in printed[""]]
    assert sorted(sums) == [
        ("08:00", "garage", 7.0),
        ("08:00", "kitchen", 0.5),
        ("09:00", "garage", 6.5),
        ("09:00", "kitchen", 2.0),
    ]
    assert [(row["meter"], row["kwh"]) for row in printed["late"]] == [("garage", 0.5)]


def test_visitors_tells_how_many_came_and_who_came_often(run: Run) -> None:
    printed = run("visitors.py", "--visitors", "1000")
    [totals] = printed["totals"]
    assert totals["visits"] == 1_000 + 10
    assert abs(int(str(totals["visitors"])) / 1_000 - 1) < 0.04
    assert printed["often"] == [{"visitor": "visitor 0", "visits": 11}]


def test_scores_guesses_better_than_chance(run: Run) -> None:
    rows = run("scores.py")[""]
    assert len(rows) == 9
    flights = sum(int(str(row["flights"])) for row in rows)
    right = sum(float(str(row["share_right"])) * int(str(row["flights"])) for row in rows)
    assert flights > 2_000
    assert right / flights > 0.65


def test_scores_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(ArtifactError, match="needs scikit-learn: pip install scikit-learn"):
        capture(EXAMPLES / "scores.py")


def test_trades_are_told_in_order_of_event_time(run: Run) -> None:
    printed = run("trades.py")
    lots = [(row["share"], row["price"]) for row in printed["lots"]]
    assert lots == [("ACME", 104.0), ("ZINC", 21.0), ("ACME", 110.0)]
    acme = [row["average"] for row in printed["average"] if row["share"] == "ACME"]
    assert acme[:4] == [100.0, 99.0, (100.0 + 98.0 + 104.0) / 3, 104.0]
    leaps = [(row["share"], row["price"], row["trades"]) for row in printed["leaps"]]
    assert leaps == [("ACME", 110.0, 4), ("ACME", 101.0, 5), ("ACME", 109.0, 8)]
    falls = [(row["share"], row["trades"], row["fall"]) for row in printed["falls"]]
    assert falls == [("ACME", 4, 2.0), ("ZINC", 2, 1.0), ("ACME", 3, 0.0), ("ZINC", 1, 0.0)]
    assert [row["price"] for row in printed["late"]] == [100.0]


def test_shop_joins_orders_with_what_is_near_them(run: Run) -> None:
    printed = run("shop.py")
    hour = sorted((row["order"], row["page"]) for row in printed["hour"])
    assert hour == [(1, "/cups"), (1, "/tea"), (2, "/tea"), (4, "/tea")]
    paid = sorted((row["order"], row["amount"] or 0) for row in printed["paid"])
    assert paid == [(1, 100.0), (2, 40.0), (3, 0), (4, 10.0), (5, 0)]
    euros = sorted((row["order"], row["name"], row["euros"]) for row in printed["euros"])
    assert euros == [
        (1, "Ann Archer", 90.0),
        (2, "Bob Baker", 40.0),
        (3, "Ann Archer", 80.0),
        (4, None, 10.0),
        (5, "Bob Baker", 40.0),
    ]


def index() -> dict[str, str]:
    """The table of the examples' README: what is said of each file."""
    rows = re.findall(r"^\| `(\w+\.py)` \|(.+)\|$", (EXAMPLES / "README.md").read_text(), re.M)
    return dict(rows)


def test_the_index_lists_every_example() -> None:
    assert sorted(index()) == sorted(file.name for file in EXAMPLES.glob("*.py"))


def test_every_example_is_run_by_some_test() -> None:
    texts = [file.read_text() for file in Path(__file__).parent.rglob("*.py")]
    unrun = [name for name in index() if not any(f'"{name}"' in text for text in texts)]
    assert unrun == []
