"""A job's configuration: what is shown, changed and compared through its addresses."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.jobs import actions
from controlplane.jobs.models import Run, Upkeep
from controlplane.jobs.version_diff import diff_lines
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation

PAGE = "/jobs/flights/configuration/"


@pytest.fixture
def alices(as_, alice):
    return as_(alice)


def text_of(browser, address=PAGE):
    return browser.get(address).content.decode()


def test_each_setting_says_where_it_comes_from(flights, alices):
    page = " ".join(text_of(alices).split())
    assert (
        '<code>parallelism</code></span></td><td class="em">2</td><td class="mut">this job' in page
    )
    assert 'as the job file says</td><td class="mut">job file' in page


def test_a_change_that_waits_for_the_next_start_says_so(flights, run, alices, alice):
    run.settings = flights.settings
    run.save()
    actions.change_settings(flights, alice, {"checkpoint_interval_ms": 5_000})

    page = text_of(alices)
    assert "1,000 ms, until it is started again" in page
    assert "Restart with them" in page


def test_settings_are_changed_by_the_form_and_empty_fields_are_left_to_the_job_file(
    flights, alices
):
    sent = {
        "parallelism": "3",
        "checkpoint_timeout_ms": "",
        "incremental": "no",
        "arguments": "--name 'two words'",
        "tags": "nightly, core",
        "require_state": "true",
    }
    assert alices.post("/jobs/flights/settings/", sent).status_code == 302
    flights.refresh_from_db()
    kept = flights.settings
    assert (kept["parallelism"], kept["incremental"], kept["require_state"]) == (3, False, True)
    assert (kept["arguments"], kept["tags"]) == (["--name", "two words"], ["core", "nightly"])
    assert kept["checkpoint_timeout_ms"] is None


def test_a_value_that_cannot_be_is_refused_beside_its_field(flights, alices):
    answer = alices.post("/jobs/flights/settings/", {"parallelism": "many"})
    assert answer.status_code == 400
    assert "parallelism must be a whole number" in answer.content.decode().lower()


def test_a_run_shows_from_what_why_and_by_whom(flights, run, savepoint, alice, alices):
    run.restored_from, run.started_by, run.reason = savepoint, alice, "restored <b>because</b>"
    run.save()

    page = text_of(alices)
    assert f"savepoint {savepoint.pk}" in page
    assert "Restored &lt;b&gt;because&lt;/b&gt;" in page


def test_upkeep_is_paused_and_resumed_with_a_reason(flights, run, alices):
    alices.post("/jobs/flights/upkeep/", {"wish": "pause", "reason": "disk"})
    assert "Paused by alice: disk" in text_of(alices)
    alices.post("/jobs/flights/upkeep/", {"wish": "resume"})
    assert not Upkeep.objects.get().paused


def test_a_running_job_is_rescaled(flights, run, alices):
    answer = alices.post("/jobs/flights/rescale/", {"parallelism": "4"})
    assert (answer.status_code, Operation.objects.get().kind) == (302, "rescale")


def test_a_rollback_without_a_healthy_version_says_why_not(flights, run, alices):
    assert "No other version of this job has run" in text_of(alices)
    answer = alices.post("/jobs/flights/rollback/", {})
    assert answer.status_code == 409


def test_an_operation_is_cancelled_from_the_page(flights, run, alice, alices):
    operation = start_operation("savepoint", flights, alice)
    address = f"/operations/{operation.pk}/cancel/"
    assert address in text_of(alices)
    assert alices.post(address, {"reason": "not now"}).status_code == 302
    operation.refresh_from_db()
    assert operation.cancel_sentence == "cancelled by alice: not now"
    assert address not in text_of(alices)


def test_an_upgrade_has_a_mode_and_asks_for_consent(flights, run, alice, alices):
    actions.add_version(flights, alice, "flights.py", b"import engine\n")
    sent = {"version": "2", "mode": "stateless"}
    answer = alices.post("/jobs/flights/start/", sent, headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert "loses what every operator" in answer.content.decode()
    alices.post("/jobs/flights/start/", sent | {"consent": "true"})
    assert Operation.objects.get().params["mode"] == "stateless"


# Versions.


def test_two_versions_are_compared_line_by_line(flights, alice, alices):
    actions.add_version(flights, alice, "a.py", b"import engine\nx = '<b>'\n", "markup")
    actions.add_version(flights, alice, "a.py", b"import engine\nx = 2\n")

    page = text_of(alices, "/jobs/flights/versions/diff/?old=2&new=3")
    assert "<pre>x = &#x27;&lt;b&gt;&#x27;</pre>" in page
    assert "1 line added, 1 removed" in page
    assert "No run of version 2 and version 3 kept its settings" in page
    assert alices.get("/jobs/flights/versions/diff/?old=2").status_code == 400
    assert alices.get("/jobs/flights/versions/diff/?old=2&new=9").status_code == 404


def test_settings_of_the_runs_are_compared(flights, run, alice, alices):
    version = actions.add_version(flights, alice, "a.py", b"import engine\n")
    run.settings = flights.settings
    run.save()
    later = {"version": version, "engine_job_id": "b" * 32, "state": "FAILED", "pk": None}
    for name, value in (later | {"settings": {**flights.settings, "parallelism": 4}}).items():
        setattr(run, name, value)
    run.save()

    page = text_of(alices, "/jobs/flights/versions/diff/?old=1&new=2")
    assert '<td>Parallelism</td><td>2</td><td class="em">4</td>' in page


def test_a_diff_numbers_the_lines_of_both_and_leaves_out_what_is_far_from_a_change():
    old = [str(number) for number in range(20)]
    new = [*old[:2], "new", *old[3:18], "also new", *old[18:]]
    found = [(line.kind, line.old, line.new) for line in diff_lines(old, new)]

    assert ("removed", 3, None) in found
    assert ("added", None, 3) in found
    assert ("added", None, 19) in found
    assert [kind for kind, _, _ in found].count("gap") == 1
    assert ("same", 10, 10) not in found


def test_the_page_asks_the_database_as_often_for_many_runs(flights, run, alices):
    few = queries_of(alices, run, runs=1)
    assert queries_of(alices, run, runs=6) == few


def queries_of(browser, run, runs):
    Run.objects.filter(pk=run.pk).update(state="FAILED")
    for number in range(runs):
        run.pk, run.engine_job_id, run.state = None, f"{runs:016x}{number:016x}", "FAILED"
        run.save()
    with CaptureQueriesContext(connection) as captured:
        text_of(browser)
    return len(captured)
