"""Filter, order and pages of the list of jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from controlplane.jobs.fleet_query import FleetQuery


@dataclass
class Row:
    name: str
    team: str = "payments"
    state: str = "RUNNING"
    group: str = "running"
    shown: str = ""
    figures: dict = field(default_factory=dict)

    @property
    def views(self):
        return ("all", self.group)


ORDERS, CLICKS = Row("orders"), Row("clicks", team="web", state="FAILED", group="attention")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["clicks", "orders"]),
        ("ord", ["orders"]),
        ("WEB", ["clicks"]),
        ("team:web", ["clicks"]),
        ("team:web ord", []),
        ("state:running", ["orders"]),
        ("state:degraded", []),
        ("<img src=x>", []),
    ],
)
def test_each_word_narrows_it(text, found):
    query = FleetQuery.of({"f": text})
    assert [job.name for job in query.ordered([ORDERS, CLICKS]) if query.matches(job)] == found


@pytest.mark.parametrize(("view", "found"), [("attention", ["clicks"]), ("stopped", [])])
def test_a_view_narrows_it(view, found):
    query = FleetQuery.of({"view": view})
    assert [job.name for job in (ORDERS, CLICKS) if query.matches(job)] == found


def test_a_job_that_runs_and_ails_is_found_as_either():
    ailing = Row("orders", shown="DEGRADED", group="attention")
    for state in ("running", "degraded"):
        assert FleetQuery.of({"f": f"state:{state}"}).matches(ailing)


def test_by_team_what_needs_attention_comes_first_within_each_team():
    rows = [Row("a", team="web"), Row("b", team="web", group="attention"), Row("c", team="ads")]
    query = FleetQuery.of({"group": "team"})
    assert [job.name for job in query.ordered(rows)] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("sort", "order"),
    [("name", "abcd"), ("-name", "dcba"), ("in", "bacd"), ("-in", "abcd")],
)
def test_a_column_orders_within_each_group_and_the_unknown_comes_last(sort, order):
    rates = {"a": 20.0, "b": 3.0, "c": None}
    rows = [Row(name, figures={"in": rates[name]}) for name in "cab"] + [Row("d")]
    assert "".join(row.name for row in FleetQuery.of({"sort": sort}).ordered(rows)) == order
    assert FleetQuery.of({"sort": sort}).ordered([*rows, CLICKS])[0] is CLICKS


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"f": "owner:me"}, "the filter has no key owner: use team or state"),
        ({"view": "odd"}, "there is no view odd"),
        ({"sort": "-size"}, "jobs cannot be sorted by -size"),
    ],
)
def test_what_is_not_understood_is_said_and_hides_nothing(asked, sentence):
    query = FleetQuery.of(asked)
    assert query.fault.startswith(sentence)
    assert query.matches(ORDERS)


@pytest.mark.parametrize("page", ["0", "-1", "x", "99999999999", ""])
def test_a_page_that_is_none_is_the_first(page):
    assert FleetQuery.of({"page": page}).page == 1
