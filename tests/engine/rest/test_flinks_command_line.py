"""What Flink's own command line asks for, recorded, and asked of our engine: list to dispose."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.rest.app import create_app
from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import PATIENCE_S, LocalCluster, wait_until
from engine.testing.fake_service import FakeService
from engine.testing.in_memory import InMemory
from flink_captures import FOLDER, capture, differences

COMMANDS: Mapping[str, list[dict[str, Any]]] = json.loads((FOLDER / "cli.json").read_text())

EXAMPLE = Path(__file__).parents[3] / "examples" / "flights.py"
UNKNOWN = "0" * 32

NEEDED = ("jid", "name", "start-time", "end-time", "duration", "state", "last-modification")
"""What it cannot do without in a list, beside the total of tasks."""


@dataclass
class CommandLine:
    """Asks one engine what was recorded, in its order, as the command line does."""

    http: httpx.Client
    names: dict[str, str]
    """What the recorded requests are about: job, folder, savepoint."""
    statuses: list[int] = field(default_factory=list)

    def run(self, command: str) -> Any:
        """The last answer; it ends early with a refusal, which the command line prints."""
        answer: httpx.Response | None = None
        for recorded in COMMANDS[command]:
            answer = self._ask(recorded)
            self.statuses.append(answer.status_code)
            if not answer.is_success:
                assert list(answer.json()) == ["errors"]
                break
            assert answer.status_code == recorded["status"]
            if recorded["answer"] is not None:
                assert differences(answer.json(), recorded["answer"]) == set()
        assert answer is not None
        return answer.json()

    def _ask(self, recorded: Mapping[str, Any]) -> httpx.Response:
        """One request; a poll is repeated until the operation is over."""

        def asked() -> httpx.Response | None:
            answer = self.http.request(
                recorded["method"],
                self._named(recorded["path"]),
                json=json.loads(self._named(json.dumps(recorded["body"]))),
                headers={"connection": "close"},
            )
            body = answer.json()
            self.names["trigger"] = body.get("request-id", self.names.get("trigger", ""))
            return None if body.get("status") == {"id": "IN_PROGRESS"} else answer

        return wait_until(asked, f"{recorded['path']} is over")

    def _named(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(f"{{{name}}}", value)
        return text


@dataclass
class Engine:
    """Where it is asked."""

    http: httpx.Client
    client: EngineClient
    folder: str

    def command_line(self) -> CommandLine:
        """A command line that means a job which has just begun to run."""
        artifact = self.client.upload(EXAMPLE.name, EXAMPLE.read_bytes())
        arguments = ("--speed", "86400", "--output", f"{self.folder}/out", "--no-points")
        job = self.client.run(RunRequest(Program(artifact, arguments, parallelism=1)))
        wait_until(lambda: self.client.job(job).all_running, "the job runs")
        return CommandLine(self.http, {"job": job, "unknown": UNKNOWN, "folder": self.folder})

    def reaches(self, line: CommandLine, status: JobStatus) -> bool:
        """Whether the job comes to a state."""
        job = line.names["job"]
        wait_until(lambda: self.client.job_status(job) is status, f"the job is {status}")
        return True


@pytest.fixture(
    params=["in memory", pytest.param("of processes", marks=pytest.mark.integration)],
    scope="module",
)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("saved")
    if request.param == "in memory":
        transport = InMemory(create_app(FakeService()))
        url = "http://127.0.0.1:8081"
        with httpx.Client(transport=transport, base_url=url) as http:
            yield Engine(http, EngineClient(url, transport=transport), str(folder))
        return
    with (
        LocalCluster(tmp_path_factory.mktemp("engine"), task_managers=1, slots=4) as cluster,
        httpx.Client(base_url=cluster.url, trust_env=False, timeout=PATIENCE_S) as http,
        EngineClient(cluster.url) as client,
    ):
        yield Engine(http, client, str(folder))


def test_commands_about_a_running_job_end_as_they_did_with_flink(engine: Engine) -> None:
    line = engine.command_line()
    for command in ("list", "list_running", "list_all"):
        (listed, *_) = line.run(command)["jobs"]
        assert differences({"jobs": [listed]}, capture("20_jobs_overview")) == set()
        assert all(name in listed for name in NEEDED)
        assert listed["tasks"]["total"] > 0
    for command in ("savepoint", "savepoint_native_default"):
        assert "savepoint-" in line.run(command)["operation"]["location"]
    line.run("savepoint_detached")
    line.run("checkpoint")
    line.run("checkpoint_full")
    assert "savepoint-" in line.run("stop")["operation"]["location"]
    assert engine.reaches(line, JobStatus.FINISHED)


def test_a_drained_job_has_ended_and_its_savepoint_can_be_disposed_of(engine: Engine) -> None:
    line = engine.command_line()
    line.names["savepoint"] = line.run("stop_drain")["operation"]["location"]
    assert engine.reaches(line, JobStatus.FINISHED)
    assert line.run("dispose")["operation"] == {}


def test_a_job_is_cancelled_with_and_without_a_savepoint(engine: Engine) -> None:
    line = engine.command_line()
    assert line.run("cancel") == {}
    assert engine.reaches(line, JobStatus.CANCELED)
    with_savepoint = engine.command_line()
    found = with_savepoint.run("cancel_with_sp")
    assert found["operation"]["location"].startswith(engine.folder)
    assert engine.reaches(with_savepoint, JobStatus.CANCELED)


def test_what_cannot_be_done_is_refused_in_a_form_that_it_prints(engine: Engine) -> None:
    line = engine.command_line()
    assert "not found" in line.run("savepoint_unknown")["errors"][0]
    line.run("stop")
    assert engine.reaches(line, JobStatus.FINISHED)
    for command in ("stop_again", "cancel_finished"):
        (sentence,) = line.run(command)["errors"]
        assert "FINISHED" in sentence
    assert line.statuses == [404, 202, 200, 409, 409]
