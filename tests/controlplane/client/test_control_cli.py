"""`headwater --control`: what people type, against the real API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from controlplane.backends.errors import EngineRefused
from controlplane.backends.models import Cluster
from controlplane.client import main
from controlplane.operations.models import Operation
from people import JOB_FILE

ROOT = Path(__file__).parents[3]


def test_a_job_goes_through_its_life(headwater, team, lab, tmp_path, monkeypatch):
    monkeypatch.setattr("controlplane.client.following.POLL_S", 0)
    file = tmp_path / "clicks.py"
    file.write_bytes(JOB_FILE)

    code, out, err = headwater("deploy", "clicks", str(file), "--team", "payments", "-p", "2")
    assert (code, "clicks" in out) == (0, True), err
    assert headwater("savepoint", "clicks", "--label", "nightly")[0] == 0
    listed = headwater("savepoints", "clicks")[1]
    assert "nightly" in listed
    assert headwater("upload", "clicks", str(file))[1] == "version 2 of clicks is here\n"
    assert headwater("upgrade", "clicks", "2")[0] == 0
    assert headwater("stop", "clicks")[0] == 0
    assert "FINISHED" in headwater("jobs")[1]
    assert headwater("operations", "--job", "clicks", "-n", "2")[1].count("clicks") == 2
    assert "deploy.request" in headwater("audit", "--job", "clicks")[1]


def test_no_wait_says_which_operation_it_is_and_watch_follows_it(headwater, running):
    code, out, _ = headwater("savepoint", "flights", "--no-wait")
    assert code == 0
    operation = Operation.objects.get(pk=out.strip())

    code, out, err = headwater("watch", str(operation.pk))
    assert code == 0, err
    assert "is complete" in out


def test_a_reader_that_has_seen_enough_is_no_error(headwater, running, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert headwater("jobs") == (141, "", "")


def test_for_programs_there_is_json(headwater, running):
    code, out, _ = headwater("--json", "jobs")
    (job,) = json.loads(out)
    assert (job["name"], job["state"], code) == ("flights", "RUNNING", 0)


def test_an_operation_that_fails_is_an_error(headwater, running, engine):
    engine.fail("trigger_savepoint", EngineRefused("no disk is left"))
    code, out, err = headwater("savepoint", "flights")

    assert (code, out) == (1, "")
    assert err.endswith("headwater: savepoint of flights failed: no disk is left\n")
    assert headwater("upgrade", "flights", "1")[2].startswith(
        "headwater: job flights runs version 1 already"
    )


def test_a_refusal_is_one_sentence(headwater, flights):
    assert headwater("job", "nowhere") == (
        1,
        "",
        "headwater: there is no job nowhere that you can see\n",
    )
    code, _, err = headwater("deploy", "x", "/nowhere.py", "--team", "payments")
    assert (code, err.split(":")[1]) == (1, " job file /nowhere.py cannot be read")


def test_pages_are_joined(headwater, flights):
    for number in range(205):
        flights.savepoints.create(origin="manual", label=f"label-{number}")
    assert headwater("savepoints", "flights", "-n", "203")[1].count("label-") == 203
    assert headwater("savepoints", "flights", "-n", "1000")[1].count("label-") == 205


def test_a_lost_answer_starts_nothing_twice(headwater, running, answers, monkeypatch):
    monkeypatch.setattr("controlplane.client.connection.RETRY_AFTER_S", (0, 0))
    lost = []

    def handle(request):
        answer = answers(request)
        if request.method == "POST" and not lost:
            lost.append(request)
            raise httpx.ReadTimeout("")
        return answer

    assert headwater("savepoint", "flights", "--no-wait", handle=handle)[0] == 0
    assert Operation.objects.filter(kind="savepoint").count() == 1


def test_a_control_plane_that_is_away_is_said_to_be(headwater, monkeypatch):
    monkeypatch.setattr("controlplane.client.connection.RETRY_AFTER_S", (0,))

    def refuse(_):
        msg = "connection refused"
        raise httpx.ConnectError(msg)

    assert headwater("jobs", handle=refuse) == (
        1,
        "",
        "headwater: control plane at http://control does not answer: connection refused; "
        "is it up?\n",
    )


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"{}"])
def test_somebody_else_is_no_control_plane(headwater, body):
    code, _, err = headwater("jobs", handle=lambda _: httpx.Response(404, content=body))
    assert code == 1
    assert "http://control is no control plane: it answered 404" in err


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "", "http://"])
def test_an_address_must_be_one(url, capsys):
    assert main(["--control", url, "jobs"], environ={"HEADWATER_TOKEN": "hw_x"}) == 1
    assert "address must be a URL" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"hw_\xc3\xa9"])
def test_a_token_file_must_hold_one(tmp_path, content, capsys):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    given = ["--control", "http://control", "--token-file", str(file), "jobs"]
    assert main(given, environ={}) == 1
    assert "token" in capsys.readouterr().err


def test_without_a_control_plane_it_is_the_engines_command_line(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "jobmanager" in capsys.readouterr().out


def test_it_needs_no_django():
    code = "import sys, controlplane.client.commands; print('django' in sys.modules)"
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=path)
    assert told.stdout == "False\n", told.stderr


def test_a_job_is_moved_and_given_away(headwater, flights, alice):
    Cluster.objects.create(name="lab-2", url="fake://lab-2")
    code, out, _ = headwater("move", "flights", "lab-2")
    assert (code, out) == (0, "flights starts on lab-2 from now on\n")

    code, _, err = headwater("give", "flights", "payments")
    assert (code, "needs the admin role in team payments: token cli gives operator" in err) == (
        1,
        True,
    )
