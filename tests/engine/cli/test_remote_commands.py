"""Commands that ask an engine, here one in memory behind its real HTTP interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from engine.checkpoint.inspection.questions import StateQuestion, StateRows
from engine.cli import looks, main, remote
from engine.rest.app import create_app
from engine.rest.client import EngineClient
from engine.rest.errors import Unavailable
from engine.rest.model.jobs import JobStatus
from engine.rest.model.operations import TriggerStatus
from engine.rest.model.requests import RunRequest
from engine.testing.fake_service import FakeService
from engine.testing.in_memory import InMemory
from fixtures import programs

Headwater = Callable[..., int]


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def headwater(service: FakeService) -> Headwater:
    def connect(url: str, token: str | None) -> EngineClient:
        return EngineClient(url, token, transport=InMemory(create_app(service)))

    return lambda *argv: main(argv, connect=connect)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "flights.py"
    path.write_text("pass\n")
    return str(path)


@pytest.fixture
def job(headwater: Headwater, file: str, service: FakeService) -> str:
    assert headwater("run", file) == 0
    return next(iter(service.known))


def test_run_starts_a_job_with_everything_that_was_given(
    headwater: Headwater, file: str, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    code = headwater(
        *("run", file, "-p", "3", "--name", "flights@r-1", "-D", "a.b=c=d", "--allow-non-restored"),
        *("--", "--speed", "10", "--name", "theirs"),
    )
    request = service.requests[0]
    assert code == 0
    assert request.program.parallelism == 3
    assert request.program.settings == {"a.b": "c=d", "pipeline.name": "flights@r-1"}
    assert request.program.arguments == ("--speed", "10", "--name", "theirs")
    assert request.allow_non_restored is True
    (job_id,) = service.known
    assert capsys.readouterr().out == f"job {job_id} started with empty state\n"


def test_a_savepoint_is_taken_and_started_from(
    headwater: Headwater,
    job: str,
    file: str,
    service: FakeService,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    assert headwater("savepoint", "flights", "file:///data/svpt") == 0
    path = capsys.readouterr().out.strip()
    assert path.startswith("file:///data/svpt/savepoint-")
    assert headwater("run", file, "-s", path) == 0
    assert capsys.readouterr().out.endswith(f"started from {path}\n")
    assert service.requests[1].savepoint_path == path


def test_run_packs_a_folder_and_names_its_entry(
    headwater: Headwater, tmp_path: Path, service: FakeService
) -> None:
    folder = programs.written(tmp_path / "code")
    assert headwater("run", str(folder), "--entry", "tides.jobs:build", "--", "out") == 0
    program = service.requests[0].program
    assert (program.entry, program.arguments) == ("tides.jobs:build", ("out",))
    assert [one.filename for one in service.uploaded.values()] == ["code.zip"]


class Installing(FakeService):
    """An engine that installs packages when a job is asked for the first time."""

    installed = False

    async def run(self, request: RunRequest) -> str:
        if not self.installed:
            self.installed = True
            msg = "packages of the job are still being installed: rich; ask again in a moment"
            raise Unavailable(msg)
        return await super().run(request)


def test_run_waits_until_packages_are_installed(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "INSTALLING_S", 0)
    transport = InMemory(create_app(Installing()))
    assert main(["run", file], connect=lambda url, _: EngineClient(url, transport=transport)) == 0
    said = capsys.readouterr()
    assert said.err.count("packages of the job are still being installed: rich") == 1
    assert "started with empty state" in said.out


class WithoutSlots:
    """An engine whose one job waits for slots, and its savepoint with it."""

    url = "http://127.0.0.1:8081"

    def __init__(self) -> None:
        self.answers = [TriggerStatus(done=False), TriggerStatus(done=True, location="/svpt/1")]

    def savepoint_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        return self.answers.pop(0)

    def jobs(self) -> list[SimpleNamespace]:
        waiting = "waits for 2 slots, 1 free"
        known = {"id": "a", "state": JobStatus.CREATED, "tasks": {"total": 2}}
        return [SimpleNamespace(**known, waiting_for=waiting)]


def test_a_savepoint_that_waits_for_slots_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PATIENCE_S", -1.0)
    target = remote.Target(cast("EngineClient", WithoutSlots()))
    assert target.wait_for_savepoint("a", "t") == "/svpt/1"
    told = "it is CREATED, waits for 2 slots, 1 free, with 0/2 tasks running"
    assert told in capsys.readouterr().err


def test_a_relative_folder_is_meant_from_here(
    headwater: Headwater, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert headwater("savepoint", job, "svpt") == 0
    assert capsys.readouterr().out.startswith(str(Path.cwd() / "svpt"))


def test_stop_ends_the_job_with_a_savepoint(
    headwater: Headwater, job: str, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert headwater("stop", "flights", "--drain", "-p", "/svpt") == 0
    assert capsys.readouterr().out.startswith("/svpt/savepoint-")
    assert service.known[job].status is JobStatus.FINISHED


@pytest.mark.parametrize("length", [8, 31, 32])
def test_cancel_takes_the_beginning_of_an_id(
    length: int, headwater: Headwater, job: str, service: FakeService
) -> None:
    assert headwater("cancel", job[:length]) == 0
    assert service.known[job].status is JobStatus.CANCELED


def test_list_shows_running_jobs_or_all(
    headwater: Headwater, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    headwater("list")
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["id", "name", "state", "started", "tasks", "running"]
    assert line.split() == [job, "flights", "RUNNING", "2026-11-30", "03:59:14", "UTC", "2/2"]

    headwater("cancel", job)
    capsys.readouterr()
    headwater("list")
    assert capsys.readouterr().out == "no running jobs; --all shows those that have ended\n"
    headwater("list", "--all")
    assert "CANCELED" in capsys.readouterr().out


def test_list_says_for_how_many_slots_a_job_waits(
    headwater: Headwater, job: str, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = replace(
        service.known[job], status=JobStatus.CREATED, waiting_for="waits for 2 slots, 1 free"
    )
    service.known[job] = waiting
    headwater("list")
    assert "CREATED, waits for 2 slots, 1 free" in capsys.readouterr().out


def test_of_two_jobs_with_one_name_the_running_one_is_meant(
    headwater: Headwater, job: str, file: str, service: FakeService
) -> None:
    headwater("cancel", job)
    headwater("run", file)
    assert headwater("stop", "flights") == 0
    assert [one.status for one in service.known.values()] == [
        JobStatus.CANCELED,
        JobStatus.FINISHED,
    ]


def test_a_name_of_two_running_jobs_is_refused(
    headwater: Headwater, job: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    headwater("run", file)
    assert headwater("cancel", "flights") == 1
    assert "job 'flights' is not unique: it may be " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (
            ("cancel", "nope"),
            "job 'nope' is not known at http://127.0.0.1:8081; see headwater list",
        ),
        (("run", "nope.py"), "job file nope.py cannot be read: No such file or directory; check"),
        (("run", "FILE", "-s", "/nope"), "snapshot is not there: no folder /nope; check the path"),
        (("savepoint", "flights", "/unwritable"), "savepoint cannot be written: /unwritable is"),
        (("run", "FILE", "--job-id", "x"), "field jobId must be 32 hex digits: got 'x'"),
    ],
)
def test_an_error_is_one_sentence(
    argv: tuple[str, ...],
    sentence: str,
    headwater: Headwater,
    job: str,
    file: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    assert headwater(*(file if part == "FILE" else part for part in argv)) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"headwater: {sentence}")
    assert printed.err.count("\n") == 1


def test_an_engine_that_is_away_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", "http://127.0.0.1:9", "list"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("headwater: engine at http://127.0.0.1:9 cannot be reached: ")
    assert error.count("\n") == 1


def test_the_address_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, service: FakeService
) -> None:
    asked: list[tuple[str, str | None]] = []

    def connect(url: str, token: str | None) -> EngineClient:
        asked.append((url, token))
        return EngineClient(url, transport=InMemory(create_app(service)))

    monkeypatch.setenv("HEADWATER_ENGINE_URL", "http://localhost:7000")
    monkeypatch.setenv("HEADWATER_ENGINE_TOKEN", "secret")
    assert main(["list"], connect=connect) == 0
    assert main(["--url", "http://127.0.0.1:7001", "list"], connect=connect) == 0
    assert asked == [("http://localhost:7000", "secret"), ("http://127.0.0.1:7001", "secret")]


@pytest.mark.parametrize(
    "argv",
    [(), ("fly",), ("run",), ("run", "j.py", "-p", "0"), ("run", "j.py", "-D", "x"), ("state",)],
)
def test_wrong_usage_ends_with_two(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert "usage: headwater" in capsys.readouterr().err


@pytest.mark.parametrize("server", ["jobmanager", "taskmanager"])
def test_the_servers_are_commands_too(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([server, "--help"])
    assert ended.value.code == 0
    assert f"usage: headwater {server}" in capsys.readouterr().out


def test_an_engine_looks_into_snapshots_when_asked_to(
    headwater: Headwater,
    job: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(looks, "POLL_S", 0.0)
    headwater("savepoint", "flights", "file:///data/svpt")
    path = capsys.readouterr().out.splitlines()[-1]
    assert headwater("savepoint", "show", path, "--remote") == 0
    assert "daily" in capsys.readouterr().out
    assert headwater("savepoint", "verify", path, "--remote") == 0
    assert "files are as they were written" in capsys.readouterr().out
    assert headwater("savepoint", "diff", path, path, "--remote") == 0
    assert capsys.readouterr().out == "the two hold the same\n"
    assert headwater("savepoint", "verify", "/none", "--remote") == 1
    assert capsys.readouterr().err == (
        "headwater: snapshot is not there: no folder /none; check the path\n"
    )


def test_limit_changes_how_fast_sources_read_and_tells_it(
    headwater: Headwater, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert headwater("limit", job, "1500", "--source", "flights") == 0
    assert capsys.readouterr().out.split() == ["source", "rows", "per", "second", "flights", "1500"]
    assert headwater("limit", job, "none") == 0
    assert headwater("limit", job) == 0
    assert capsys.readouterr().out.count("flights  none") == 2
    with pytest.raises(SystemExit):
        headwater("limit", job, "fast")


def test_an_engine_says_what_a_job_would_restore(
    headwater: Headwater, job: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    headwater("savepoint", "flights", "file:///data/svpt")
    path = capsys.readouterr().out.splitlines()[-1]
    assert headwater("preflight", file, "-s", path, "--remote") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["operator", "state", "outcome", "rows", "bytes"]
    assert ["daily", "slices", "restored", "40", "20,219"] in [line.split() for line in lines]
    assert headwater("preflight", file, "-s", "/none", "--remote") == 1
    assert capsys.readouterr().err.startswith("headwater: snapshot is not there: no folder /none")


def test_rescale_waits_until_the_job_runs_at_the_other_parallelism(
    headwater: Headwater, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert headwater("rescale", job, "3") == 0
    assert capsys.readouterr().out == f"job {job} (flights) runs at parallelism 3\n"
    assert headwater("rescale", job, "9") == 1
    assert "needs 9 slots: got 8" in capsys.readouterr().err


class Answering:
    """An engine that has so many rows."""

    def __init__(self, height: int) -> None:
        self.height = height

    def read_state(self, path: str, question: StateQuestion) -> StateRows:
        assert question.limit is not None
        rows = [[row / 2 if row else "NaN"] for row in range(min(self.height, question.limit))]
        return StateRows({"x": "Float64"}, rows, truncated=question.limit < self.height)


@pytest.mark.parametrize(("limit", "shown"), [(2, 2), (None, 10_000), (20_000, 10_000)])
def test_an_engine_gives_no_more_rows_than_one_answer_holds(limit: int | None, shown: int) -> None:
    there = looks.There(cast("EngineClient", Answering(10_001)))
    found, more = there.rows("/s", StateQuestion("count", "counts", limit=limit))
    assert (found.height, more) == (shown, True)
    assert found.item(0, "x") == "NaN"
