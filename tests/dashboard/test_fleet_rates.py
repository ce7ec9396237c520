"""The last minute of each job's input rate, with which the lines in the list of jobs begin."""

from __future__ import annotations

from controlplane.metrics.line_protocol import Point, tags_of
from controlplane.metrics.store import ENGINE
from controlplane.moments import now_ms

KNOWN = [12.0, 13.0]


def written(store, job, ago_ms, value, purpose="live"):
    tags = tags_of({"job": job, "run": "1", "purpose": purpose}.items())
    at_ns = (now_ms() - ago_ms) * 10**6
    assert store.write(ENGINE, [Point("job", tags, (("in", value),), at_ns)]) == []


def test_a_line_has_what_was_measured_in_the_last_minute_and_gaps(as_, alice, run, store):
    for ago_ms, value in ((300_000, 99.0), (30_000, 12.0), (20_000, 13.0)):
        written(store, "flights", ago_ms, value)
    written(store, "flights", 25_000, 50.0, purpose="replay")
    found = as_(alice).get(f"/jobs/rates.json?job={run.job_id}&job=x&job=99").json()
    assert list(found) == [str(run.job_id)]
    line = found[str(run.job_id)]
    assert len(line) == 60
    assert [value for value in line if value is not None] == KNOWN
    assert line.index(13.0) - line.index(12.0) in (9, 10, 11)


def test_a_stranger_gets_no_line(as_, mallory, run, store):
    assert as_(mallory).get(f"/jobs/rates.json?job={run.job_id}").json() == {}
