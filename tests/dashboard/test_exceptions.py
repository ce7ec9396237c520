"""The exceptions page: causes apart from echoes, what followed, filters, files."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.backends.sightings import FailureSighting, RestoreSighting
from controlplane.jobs.failures import FailureNotes
from controlplane.jobs.models import RunFailure
from controlplane.jobs.traces import folded
from controlplane.moments import epoch_ms

PAGE = "/jobs/flights/exceptions/"
TRACE = """FunctionError: row 7 has no column delay
Traceback (most recent call last):
  File "/opt/engine/runtime/task.py", line 90, in on_batch
    self._run(batch)
    ~~~~~~~~~^^^^^^^
  File "/venv/lib/python3.12/site-packages/polars/frame.py", line 4, in map
    return call()
  File "/home/bob/flights.py", line 7, in parse
    raise FunctionError
FunctionError: row 7 has no column delay"""


@pytest.fixture
def now():
    return epoch_ms(timezone.now())


@pytest.fixture
def failures(run, now):
    """One cause three times, with an echo, and another two days ago."""
    own = [
        FailureSighting(
            at_ms=now - ago * 60_000,
            name="FunctionError",
            sentence=f"row {ago} has no column delay",
            task=f"daily → files ({ago}/3) - execution #0",
            operator="daily",
            task_manager="tm-1",
            domain="user",
            trace=TRACE,
            echoes=(FailureSighting(now, "ChannelClosed", "peer is gone", "flights (1/3)"),),
        )
        for ago in (1, 2, 3)
    ]
    lost = FailureSighting(
        now - 48 * 3_600_000, "WorkerLost", "worker was killed by signal 9", "", domain="external"
    )
    restored = RestoreSighting(41, now - 58_000, False, "/ckpt/41")
    FailureNotes().take_in(run, [*own, lost], restored)


def text_of(as_, person, address=PAGE):
    return as_(person).get(address).content.decode()


def test_failures_of_one_cause_stand_together_and_echoes_apart(as_, alice, failures):
    page = text_of(as_, alice)
    assert page.count('<article class="panel cause"') == 2
    assert "in the job&#x27;s own code" in page
    assert "1 echo of the last one" in page
    assert "Row 1 has no column delay." in page
    assert page.index("FunctionError") < page.index("WorkerLost")


def test_a_restart_says_from_which_checkpoint_and_how_fast(as_, alice, run, failures):
    page = text_of(as_, alice)
    assert f'href="/jobs/flights/checkpoints/?run={run.pk}&amp;id=41#c-{run.pk}-41"' in page
    assert "Restarted after" in page
    assert page.count("Not seen:") == 3


def test_a_failure_that_ended_the_job_says_why_no_restart_followed(as_, alice, failures):
    RunFailure.objects.update(verdict="no restart is left: 3 of 3")
    assert "No restart is left: 3 of 3." in text_of(as_, alice)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("span=1h", ["FunctionError"]),
        ("span=all", ["FunctionError", "WorkerLost"]),
        ("span=nonsense", ["FunctionError", "WorkerLost"]),
        ("q=signal+9", ["WorkerLost"]),
        ("q=tm-1", ["FunctionError"]),
        ("q=no+such+word", []),
        ("q=%00", ["FunctionError", "WorkerLost"]),
        ("cause=nonsense", []),
    ],
)
def test_the_address_says_what_is_shown(query, shown, as_, alice, failures):
    page = text_of(as_, alice, f"{PAGE}?{query}")
    names = ("FunctionError", "WorkerLost")
    assert [name for name in names if f"<h2>{name}</h2>" in page] == shown
    assert ("4 older or other ones are kept." in page) is not shown or shown


def test_failures_of_other_jobs_are_not_shown(as_, alice, failures, flights):
    RunFailure.objects.all().delete()
    assert "No failure is known" in text_of(as_, alice)


def test_more_failures_take_no_more_queries(
    as_, alice, run, failures, django_assert_max_num_queries
):
    at = timezone.now() - timedelta(hours=3)
    RunFailure.objects.bulk_create(
        RunFailure(
            run=run,
            at=at - timedelta(seconds=number),
            name="E",
            sentence="s",
            fingerprint=str(number % 70),
        )
        for number in range(700)
    )
    client = as_(alice)
    with django_assert_max_num_queries(17):
        page = client.get(PAGE).content.decode()
    assert "22 more causes" in page
    assert "2 more</a>" in page


def test_a_file_has_what_the_page_has(as_, alice, failures):
    answer = as_(alice).get("/jobs/flights/exceptions.csv?q=signal")
    assert answer["Content-Disposition"] == 'attachment; filename="flights-exceptions.csv"'
    (row,) = csv.DictReader(io.StringIO(answer.getvalue().decode()))
    assert (row["error"], row["domain"], row["version"]) == ("WorkerLost", "external", "1")
    rows = json.loads(as_(alice).get("/jobs/flights/exceptions.json").getvalue())
    assert [row["error"] for row in rows] == ["FunctionError"] * 3 + ["WorkerLost"]
    assert rows[0]["trace"] == TRACE
    assert json.loads(as_(alice).get("/jobs/flights/exceptions.json?q=nope").getvalue()) == []


def test_no_cell_of_a_file_is_a_formula(as_, alice, failures):
    RunFailure.objects.update(sentence="=HYPERLINK(1)")
    answer = as_(alice).get("/jobs/flights/exceptions.csv").getvalue().decode()
    assert "'=HYPERLINK(1)" in answer
    assert ",=HYPERLINK" not in answer


def test_a_stranger_gets_no_file(as_, mallory, failures):
    assert as_(mallory).get("/jobs/flights/exceptions.csv").status_code == 404


def test_frames_of_engine_and_libraries_are_folded_and_nothing_is_lost():
    parts = folded(TRACE)
    assert [part.frames for part in parts] == [0, 2, 0]
    assert "flights.py" in parts[2].text
    assert "\n".join(part.text for part in parts) == TRACE


def test_frames_of_java_are_folded_too():
    trace = (
        "java.lang.IllegalStateException: poison key 7\n"
        "\tat com.acme.KeyedCount.process(KeyedCount.java:31)\n"
        "\tat org.apache.flink.runtime.Task.run(Task.java:1)\n"
        "\tat java.base/java.lang.Thread.run(Thread.java:2)"
    )
    assert [part.frames for part in folded(trace)] == [0, 2]
