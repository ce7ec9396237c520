"""The one client of an engine, ours or Apache Flink: blocking and awaiting, typed both ways.

    client = EngineClient("http://127.0.0.1:8081")
    for job in client.jobs(): ...
    job_id = client.run(RunRequest(Program(client.upload("job.py", content))))

Each method is a request of `calls/`, sent; so both clients have the same methods, and the
awaiting one returns awaitables.

Errors   ClientError
          +-- EngineUnreachable   nobody answered in time; what was asked may still have happened
          +-- UnexpectedAnswer    somebody answered who does not speak this interface
          +-- Refused             the engine said no: `status`, and one sentence
               +-- NotFound       no such job, vertex, operation, artifact or route
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import httpx

from engine.errors import ExternalError
from engine.rest.calls import (
    checkpoint_calls,
    cluster_calls,
    job_calls,
    program_calls,
    running_calls,
    snapshot_calls,
    vertex_calls,
)
from engine.rest.calls.call import Call
from engine.rest.sentences import refusal

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8081"
DEFAULT_TIMEOUT_S = 10.0


class ClientError(ExternalError):
    """A request did not give what was asked for."""


class EngineUnreachable(ClientError):
    """Nobody answered in time."""


class UnexpectedAnswer(ClientError):
    """Somebody answered who does not speak this interface."""


class Refused(ClientError):
    """The engine said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class NotFound(Refused):
    """What the request names does not exist."""


class Method(Generic[P, T]):
    """Makes a method of either client out of a request: what it gives is what `send` gives."""

    def __init__(self, call: Callable[P, Call[T]]) -> None:
        self.call = call
        self.__doc__ = call.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: EngineClient, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncEngineClient, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(
        self, client: EngineClient | AsyncEngineClient | None, owner: type
    ) -> Self | Callable[P, T] | Callable[P, Awaitable[T]]:
        if client is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> T | Awaitable[T]:
            return client.send(self.call(*args, **kwargs))

        return method  # type: ignore[return-value]  # which of the two, `client` decides


class Methods:
    """Every request, as a method; the same ones for both clients."""

    overview = Method(cluster_calls.overview)
    capabilities = Method(cluster_calls.capabilities)
    task_managers = Method(cluster_calls.task_managers)
    task_manager_metrics = Method(cluster_calls.task_manager_metrics)
    job_manager_metrics = Method(cluster_calls.job_manager_metrics)
    local_task_managers = Method(cluster_calls.local_task_managers)
    start_task_manager = Method(cluster_calls.start_task_manager)
    stop_task_manager = Method(cluster_calls.stop_task_manager)
    respawn_task_managers = Method(cluster_calls.respawn_task_managers)
    jobs = Method(job_calls.jobs)
    job = Method(job_calls.job)
    job_status = Method(job_calls.job_status)
    job_result = Method(job_calls.job_result)
    job_failures = Method(job_calls.job_failures)
    job_metrics = Method(job_calls.job_metrics)
    job_settings = Method(job_calls.job_settings)
    progress = Method(job_calls.progress)
    watch = Method(running_calls.watch)
    statistics = Method(running_calls.statistics)
    rescale = Method(running_calls.rescale)
    rescale_status = Method(running_calls.rescale_status)
    read_limits = Method(running_calls.read_limits)
    live_state = Method(running_calls.live_state)
    limit_reading = Method(running_calls.limit_reading)
    engine_plan = Method(job_calls.engine_plan)
    subtasks = Method(vertex_calls.subtasks)
    vertex_metrics = Method(vertex_calls.vertex_metrics)
    subtask_metrics = Method(vertex_calls.subtask_metrics)
    metric_names = Method(vertex_calls.metric_names)
    watermarks = Method(vertex_calls.watermarks)
    backpressure = Method(vertex_calls.backpressure)
    checkpoints = Method(checkpoint_calls.checkpoints)
    checkpoint = Method(checkpoint_calls.checkpoint)
    checkpoint_subtasks = Method(checkpoint_calls.checkpoint_subtasks)
    checkpoint_config = Method(checkpoint_calls.checkpoint_config)
    trigger_savepoint = Method(checkpoint_calls.trigger_savepoint)
    stop = Method(checkpoint_calls.stop)
    savepoint_status = Method(checkpoint_calls.savepoint_status)
    trigger_checkpoint = Method(checkpoint_calls.trigger_checkpoint)
    checkpoint_status = Method(checkpoint_calls.checkpoint_status)
    dispose_savepoint = Method(checkpoint_calls.dispose_savepoint)
    disposal_status = Method(checkpoint_calls.disposal_status)
    savepoint = Method(checkpoint_calls.savepoint)
    preflight = Method(program_calls.preflight)
    read_state = Method(snapshot_calls.read_state)
    verify_savepoint = Method(snapshot_calls.verify_savepoint)
    verification = Method(snapshot_calls.verification)
    compare_savepoints = Method(snapshot_calls.compare_savepoints)
    comparison = Method(snapshot_calls.comparison)
    artifacts = Method(program_calls.artifacts)
    upload = Method(program_calls.upload)
    delete_artifact = Method(program_calls.delete_artifact)
    plan = Method(program_calls.plan)
    run = Method(program_calls.run)
    cancel = Method(job_calls.cancel)


class EngineClient(Methods):
    """Blocks. May be shared by threads; close it, or use it in a `with` statement."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        # An engine is a neighbour: proxies of the environment are for the world outside.
        self._http = httpx.Client(headers=_headers(token), transport=transport, trust_env=False)

    def send(self, call: Call[T]) -> T:
        """Send one request and read its answer. Raises ClientError."""
        try:
            response = self._http.request(**_request(self.url, call, self.timeout))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreachable(self.url, error) from error
        return _answer(self.url, call, response)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncEngineClient(Methods):
    """Awaits. Belongs to one event loop; close it, or use it in an `async with` statement."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._http = httpx.AsyncClient(
            headers=_headers(token), transport=transport, trust_env=False
        )

    async def send(self, call: Call[T]) -> T:
        """Send one request and read its answer. Raises ClientError."""
        try:
            response = await self._http.request(**_request(self.url, call, self.timeout))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreachable(self.url, error) from error
        return _answer(self.url, call, response)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def _request(url: str, call: Call[Any], timeout: float) -> dict[str, Any]:
    request = {
        "method": call.method,
        "url": url + call.path,
        "params": dict(call.query),
        "timeout": httpx.Timeout(max(timeout, call.needs_s), connect=timeout),
    }
    if call.file is not None:
        request["files"] = {"jarfile": call.file}
    elif call.method != "GET":
        request["json"] = dict(call.body or {})
    return request


def _answer(url: str, call: Call[T], response: httpx.Response) -> T:
    try:
        body = response.json()
        if response.is_success:
            return call.read(body)
        message = refusal(body["errors"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unexpected(url, call, response) from error
    kind = NotFound if response.status_code == 404 else Refused
    raise kind(response.status_code, message)


def _unexpected(url: str, call: Call[Any], response: httpx.Response) -> ClientError:
    if not response.is_success:
        text = f"HTTP status {response.status_code} {response.reason_phrase}".strip()
        kind = NotFound if response.status_code == 404 else Refused
        return kind(response.status_code, f"{call.method} {url}{call.path} failed: {text}")
    return UnexpectedAnswer(
        f"answer of {url}{call.path} cannot be read: got {response.text[:80]!r}; "
        "check that an engine of a supported version listens there"
    )


def _unreachable(url: str, error: Exception) -> EngineUnreachable:
    reason = str(error) or type(error).__name__
    msg = f"engine at {url} cannot be reached: {reason}; check the address and that it runs"
    return EngineUnreachable(msg)
