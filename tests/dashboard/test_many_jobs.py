"""Pages of a control plane that has been in use for long: as many queries as with a few jobs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.jobs.fleet_query import PAGE
from large_history import fill

PAGES = [
    "/jobs/",
    "/jobs/?f=job-0&sort=-in",
    "/jobs/job-000/",
    "/jobs/job-000/checkpoints/",
    "/jobs/job-000/savepoints/",
    "/jobs/job-000/versions/",
    "/replays/new/?job=job-000",
    "/replays/",
    "/audit/",
    "/jump.json",
]


@pytest.fixture
def count(as_, alice):
    """How many queries a page takes."""
    browser = as_(alice)

    def queries(path):
        with CaptureQueriesContext(connection) as captured:
            assert browser.get(path).status_code == 200
        return len(captured)

    return queries


def test_no_page_takes_more_queries_when_there_is_more(count, team, lab, store):
    fill(team, lab, jobs=2, checkpoints=4, savepoints=1)
    few = {path: count(path) for path in PAGES}
    fill(team, lab, jobs=2 * PAGE, checkpoints=1_000, savepoints=3, first=2)
    assert {path: count(path) for path in PAGES} == few


def test_the_list_has_pages_and_counts_of_all_of_them(as_, alice, team, lab, store):
    fill(team, lab, jobs=2 * PAGE + 1, checkpoints=400, savepoints=0)
    browser = as_(alice)
    pages = [browser.get(f"/jobs/?page={number}").content.decode() for number in (1, 2, 3, 4)]
    rows = [page.count("<tbody class=") for page in pages]
    assert rows == [PAGE, PAGE, 1, 1]  # after the last page comes the last page
    assert f"{2 * PAGE + 1} jobs, page 2 of 3" in pages[1]
    assert 'rel="prev"' not in pages[0]
    assert 'rel="next"' not in pages[2]
    failed = (2 * PAGE + 1) // 20
    assert f'<span class="n t-crit">{failed}</span>' in pages[2]
    assert f"{failed} down" in pages[2]
    assert f'<span class="c" data-count="attention">{failed}</span>' in pages[2]


def test_the_server_filters_and_sorts(as_, alice, team, lab, store):
    fill(team, lab, jobs=PAGE + 10, checkpoints=100, savepoints=0)
    page = as_(alice).get("/jobs/?f=job-05&sort=-name").content.decode()
    assert page.count("<tbody class=") == 10
    assert page.index("job-058") < page.index("job-051")
    assert 'aria-sort="descending"' in page
    page = as_(alice).get("/jobs/?f=owner:me").content.decode()
    assert "The filter has no key owner" in page
    assert "0 are hidden" not in as_(alice).get("/jobs/?f=nothing-like-it").content.decode()
