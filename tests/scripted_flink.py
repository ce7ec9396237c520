"""An Apache Flink on loopback: real HTTP, bodies as they were recorded, and faults on demand.

    with running_flink() as flink:
        flink.url                                       http://127.0.0.1:…
        flink.next("POST", "stop", Says(409, "busy"))   the next such request fails, undone
        flink.next("GET", "savepoints", Slow(1.0))      it is done, and answered later
        flink.next("POST", "run", HangUp())             the connection breaks before it is done
        flink.next("POST", "run", HangUp(done=True))    … and after it
        flink.restart()                                 trigger ids and statistics are gone

As in Flink: savepoints and stops of jobs that have ended are accepted and fail when polled; a
trigger id asked twice is one savepoint; a job id asked twice is refused with 400; what a savepoint
holds is not told; paths are written `file:/…`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from flink_captures import capture

START_MS = 1_796_011_154_430
TASK_STATES = {"RUNNING": "RUNNING", "FINISHED": "FINISHED", "CANCELED": "CANCELED"}


@dataclass(frozen=True)
class Says:
    """Answer with this status and sentence, and do nothing."""

    status: int
    sentence: str = "Internal server error."


@dataclass(frozen=True)
class Slow:
    """Do it, and answer so much later."""

    seconds: float


@dataclass(frozen=True)
class HangUp:
    """Break the connection, before it is done or after."""

    done: bool = False


Fault = Says | Slow | HangUp


@dataclass
class FlinkJob:
    """One job."""

    id: str
    name: str
    request: dict[str, Any]
    state: str = "RUNNING"
    history: list[dict[str, Any]] = field(default_factory=list)
    """Checkpoint statistics, newest first."""
    failures: list[dict[str, Any]] = field(default_factory=list)
    restarts: int = 0


@dataclass
class Trigger:
    """A savepoint on its way."""

    job_id: str
    location: str
    stops: bool
    failure: str = ""
    looks_until_done: int = 1


class FlinkError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class ScriptedFlink:
    """What the cluster knows, and what shall go wrong; all of it behind one lock."""

    def __init__(self) -> None:
        self.url = ""
        self.jobs: dict[str, FlinkJob] = {}
        self.triggers: dict[str, Trigger] = {}
        self.files: list[str] = []
        self.asked: list[str] = []
        """Method and path of every request."""
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._faults: list[tuple[str, str, Fault]] = []
        self._taken = 0

    # What tests do to it.

    def next(self, method: str, part: str, *faults: Fault) -> None:
        """Let the next requests with that method and that part of a path go wrong, one a fault."""
        self._faults += [(method, part, fault) for fault in faults]

    def restart(self, *, keeps_jobs: bool = True) -> None:
        """A new job manager: with high availability it knows the running jobs, and no more."""
        with self.lock:
            for trigger in self.triggers.values():
                self._complete(trigger)
            self.triggers.clear()
            alive = {key: job for key, job in self.jobs.items() if job.state == "RUNNING"}
            self.jobs = alive if keeps_jobs else {}
            for job in self.jobs.values():
                job.history.clear()
                job.failures.clear()
                job.restarts = 0

    def fail_savepoints(self, sentence: str) -> None:
        """Let every savepoint on its way fail."""
        for trigger in self.triggers.values():
            trigger.failure = sentence

    def checkpoint(self, job_id: str, number: int, *, failed: bool = False) -> None:
        """Add one to a job's statistics."""
        job = self.jobs[job_id]
        job.history.insert(0, _entry(job_id, number, failed=failed))
        del job.history[10:]  # as many as Flink keeps

    def fault(self, method: str, path: str) -> Fault | None:
        """What goes wrong with this request."""
        for index, (wanted, part, fault) in enumerate(self._faults):
            if wanted == method and part in path:
                del self._faults[index]
                return fault
        return None

    # What it answers.

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        """Status and body. Raises FlinkError."""
        for wanted, pattern, name in ROUTES:
            if wanted == method and (found := re.fullmatch(pattern, path)):
                with self.lock:
                    answer: tuple[int, Any] = getattr(self, name)(*found.groups(), query, body)
                    return answer
        raise FlinkError(404, {"errors": [f"Not found: {path}"]})

    def overview(self, _query: object, _body: object) -> tuple[int, Any]:
        running = sum(job.state == "RUNNING" for job in self.jobs.values())
        return 200, capture("20_overview") | {"jobs-running": running}

    def jobs_overview(self, _query: object, _body: object) -> tuple[int, Any]:
        (line,) = capture("20_jobs_overview")["jobs"]
        return 200, {
            "jobs": [
                line | {"jid": job.id, "name": job.name, "state": job.state}
                for job in self.jobs.values()
            ]
        }

    def upload(self, _query: object, name: str) -> tuple[int, Any]:
        self.files.append(name)
        return 200, capture("10_jars_upload") | {"filename": f"/data/flink/web/0f3a_{name}"}

    def plan(self, _file: str, _query: object, _body: object) -> tuple[int, Any]:
        return 200, capture("12_jar_plan_get")

    def run(self, file: str, _query: object, body: dict[str, Any]) -> tuple[int, Any]:
        job_id = body["jobId"]
        if job_id in self.jobs:
            raise FlinkError(400, capture("53_run_with_same_jobid"))
        name = body["flinkConfiguration"].get("pipeline.name", file)
        self.jobs[job_id] = FlinkJob(job_id, name, body)
        return 200, {"jobid": job_id}

    def job(self, job_id: str, _query: object, _body: object) -> tuple[int, Any]:
        job = self._job(job_id)
        task = TASK_STATES.get(job.state, "CREATED")
        body = deepcopy(capture("21_job")) | {"jid": job.id, "name": job.name, "state": job.state}
        body["timestamps"][job.state] = START_MS
        for vertex in body["vertices"]:
            vertex["status"] = task
            vertex["tasks"] = dict.fromkeys(vertex["tasks"], 0) | {task: vertex["parallelism"]}
        return 200, body

    def cancel(self, job_id: str, _query: object, _body: object) -> tuple[int, Any]:
        job = self._job(job_id)
        if job.state == "FINISHED":
            raise FlinkError(409, capture("51_cancel_of_finished"))
        job.state = "CANCELED"
        return 202, capture("35_cancel")

    def result(self, job_id: str, _query: object, _body: object) -> tuple[int, Any]:
        self._job(job_id)
        return 200, capture("22_job_execution_result_running")

    def exceptions(self, job_id: str, _query: object, _body: object) -> tuple[int, Any]:
        entries = self._job(job_id).failures
        return 200, {"exceptionHistory": {"entries": entries, "truncated": False}}

    def job_metrics(self, job_id: str, query: dict[str, str], _body: object) -> tuple[int, Any]:
        if job_id not in self.jobs:
            return 200, []
        known = {"numRestarts": str(self.jobs[job_id].restarts), "uptime": "54433"}
        wanted = query.get("get", "").split(",")
        return 200, [{"id": name, "value": known[name]} for name in wanted if name in known]

    def vertex_metrics(
        self, job_id: str, _vertex: str, query: dict[str, str], _body: object
    ) -> tuple[int, Any]:
        self._job(job_id)
        listed = capture("24_vertex_subtasks_metrics_list_v1")
        if "get" not in query:
            return 200, listed
        wanted, known = query["get"].split(","), capture("25_vertex_subtasks_metrics_get_v1")
        if not {metric["id"] for metric in listed}.issuperset(wanted):
            return 200, []  # as Flink does, which knows all of them or tells none
        flat = dict.fromkeys(("min", "max", "avg", "sum", "skew"), 0.0)
        values = {metric["id"]: metric for metric in known}
        return 200, [values.get(name, {"id": name} | flat) for name in wanted]

    def checkpoints(self, job_id: str, _query: object, _body: object) -> tuple[int, Any]:
        history = self._job(job_id).history
        body = deepcopy(capture("23_checkpoints")) | {"history": history}
        counted = {"completed": 0, "failed": 0, "in_progress": 0}
        counted |= {name: _count(history, name) for name in counted}
        body["counts"] = counted | {"restored": 0, "total": len(history)}
        body["latest"] = {
            "completed": _newest(history, "completed", savepoint=False),
            "savepoint": _newest(history, "completed", savepoint=True),
            "failed": _newest(history, "failed", savepoint=False),
            "restored": None,
        }
        return 200, body

    def savepoint(self, job_id: str, _query: object, body: dict[str, Any]) -> tuple[int, Any]:
        return self._trigger(job_id, body["triggerId"], body["target-directory"], stops=False)

    def stop(self, job_id: str, _query: object, body: dict[str, Any]) -> tuple[int, Any]:
        return self._trigger(job_id, body["triggerId"], body["targetDirectory"], stops=True)

    def poll(self, job_id: str, trigger_id: str, _query: object, _body: object) -> tuple[int, Any]:
        trigger = self.triggers.get(trigger_id)
        if trigger is None or trigger.job_id != job_id:
            raise FlinkError(404, capture("31_savepoint_poll_unknown"))
        if trigger.failure:
            cause = {"class": "java.lang.IllegalStateException", "stack-trace": trigger.failure}
            return 200, _done({"failure-cause": cause | {"serialized-throwable": ""}})
        if trigger.looks_until_done:
            trigger.looks_until_done -= 1
            return 200, capture("30_savepoint_poll_in_progress")
        self._complete(trigger)
        return 200, _done({"location": f"file:{trigger.location}"})

    def _job(self, job_id: str) -> FlinkJob:
        if job_id not in self.jobs:
            raise FlinkError(404, capture("40_err_job_unknown"))
        return self.jobs[job_id]

    def _trigger(
        self, job_id: str, trigger_id: str, folder: str, *, stops: bool
    ) -> tuple[int, Any]:
        if trigger_id not in self.triggers:
            job = self.jobs.get(job_id)
            location = f"{folder}/savepoint-{job_id[:6]}-{len(self.triggers):012x}"
            trigger = self.triggers[trigger_id] = Trigger(job_id, location, stops)
            if job is None or job.state != "RUNNING":
                trigger.failure = f"Job {job_id} not found or not running"
        return 202, {"request-id": trigger_id}

    def _complete(self, trigger: Trigger) -> None:
        """Write the folder, as the cluster's machine would."""
        folder, job = Path(trigger.location), self.jobs[trigger.job_id]
        if trigger.failure or folder.exists():
            return
        folder.mkdir(parents=True)
        (folder / "_metadata").write_bytes(b"\x4b\x49\x82\x7a")
        self._taken += 1
        entry = _entry(job.id, 100 + self._taken) | {"is_savepoint": True}
        job.history.insert(0, entry | {"external_path": f"file:{trigger.location}"})
        if trigger.stops:
            job.state = "FINISHED"


JOB = r"/jobs/([0-9a-f]{32})"
ROUTES = (
    ("GET", r"/overview", "overview"),
    ("GET", r"/jobs/overview", "jobs_overview"),
    ("POST", r"/jars/upload", "upload"),
    ("POST", r"/jars/([^/]+)/plan", "plan"),
    ("POST", r"/jars/([^/]+)/run", "run"),
    ("GET", JOB, "job"),
    ("PATCH", JOB, "cancel"),
    ("GET", rf"{JOB}/execution-result", "result"),
    ("GET", rf"{JOB}/exceptions", "exceptions"),
    ("GET", rf"{JOB}/metrics", "job_metrics"),
    ("GET", rf"{JOB}/vertices/([0-9a-f]+)/subtasks/metrics", "vertex_metrics"),
    ("GET", rf"{JOB}/checkpoints", "checkpoints"),
    ("POST", rf"{JOB}/savepoints", "savepoint"),
    ("POST", rf"{JOB}/stop", "stop"),
    ("GET", rf"{JOB}/savepoints/([0-9a-f]{{32}})", "poll"),
)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        flink, split = self.server.flink, urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        flink.asked.append(f"{self.command} {split.path}")
        fault = flink.fault(self.command, split.path)
        match fault:
            case Says():
                self._send(fault.status, {"errors": [fault.sentence]})
                return
            case HangUp(done=False):
                self.close_connection = True
                return
        status, body = self._do(split.path, parse_qs(split.query), content)
        match fault:
            case Slow():
                flink.closing.wait(fault.seconds)
            case HangUp():
                self.close_connection = True
                return
        self._send(status, body)

    do_POST = do_PATCH = do_GET  # noqa: N815

    def _do(self, path: str, query: dict[str, list[str]], content: bytes) -> tuple[int, Any]:
        asked = {name: values[0] for name, values in query.items()}
        if path == "/jars/upload":
            body: Any = re.findall(rb'filename="([^"]+)"', content)[0].decode()
        else:
            body = json.loads(content or b"{}")
        try:
            return self.server.flink.answer(self.command, path, asked, body)
        except FlinkError as error:
            return error.status, error.body

    def _send(self, status: int, body: Any) -> None:
        text = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except OSError:  # whoever asked has given up meanwhile
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, flink: ScriptedFlink) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.flink = flink


@contextmanager
def running_flink() -> Iterator[ScriptedFlink]:
    """The cluster, as long as the block."""
    flink = ScriptedFlink()
    server = _Server(flink)
    flink.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield flink
    finally:
        flink.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _entry(job_id: str, number: int, *, failed: bool = False) -> dict[str, Any]:
    entry: dict[str, Any] = deepcopy(capture("23_checkpoints")["history"][0])
    path = f"file:/data/flink/ckpt/{job_id}/chk-{number}"
    entry |= {"id": number, "external_path": path, "trigger_timestamp": START_MS + 1_000 * number}
    if failed:
        del entry["external_path"], entry["discarded"]
        entry |= {
            "className": "failed",
            "status": "FAILED",
            "failure_timestamp": START_MS + 1_000 * number + 400,
            "failure_message": "Checkpoint expired before completing.",
        }
    return entry


def _done(operation: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"id": "COMPLETED"}, "operation": operation}


def _count(history: list[dict[str, Any]], state: str) -> int:
    return sum(entry["status"] == state.upper() for entry in history)


def _newest(history: list[dict[str, Any]], state: str, *, savepoint: bool) -> dict[str, Any] | None:
    for entry in history:
        if entry["status"] == state.upper() and entry["is_savepoint"] == savepoint:
            return entry
    return None
