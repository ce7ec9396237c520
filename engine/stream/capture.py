"""Capture: run a job file, and take the graph that it hands to `execute()`.

Needs    a process of its own: the file runs as `__main__`, with its arguments and its folder on the
         path, and stays loaded so that its functions can be pickled.
Errors   ArtifactError with one sentence for a file that cannot be read, does not compile, raises,
         exits, or submits no job or two.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from types import CodeType, ModuleType
from typing import TextIO

import cloudpickle

from engine.errors import ArtifactError, HeadwaterError
from engine.graph.jobgraph import JobGraph
from engine.stream.recording import recording

_USAGE = 2
"""What argparse exits with."""


def capture(
    path: Path, args: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> JobGraph:
    """Run a job file with arguments and settings; return its graph. Raises ArtifactError."""
    code = _compiled(path)
    with _as_main(path, args) as module, recording(settings or {}) as recorded:
        known = set(sys.modules)
        _run(code, module, path)
        _pickle_by_value(path.resolve().parent, known)
    if len(recorded.graphs) != 1:
        count = len(recorded.graphs)
        msg = (
            f"job file {path.name} submits no job; end it with env.execute()"
            if count == 0
            else f"job file {path.name} submits {count} jobs; write one job per file"
        )
        raise ArtifactError(msg)
    return recorded.graphs[0]


def _compiled(path: Path) -> CodeType:
    try:
        return compile(path.read_bytes(), str(path), "exec")
    except OSError as error:
        msg = f"job file {path} cannot be read: {error.strerror}; check the path"
        raise ArtifactError(msg) from error
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        where = path.name if line is None else f"{path.name}, line {line}"
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        msg = f"job file has a syntax error: {where}: {reason}; correct it and submit again"
        raise ArtifactError(msg) from error


@contextmanager
def _as_main(path: Path, args: Sequence[str]) -> Iterator[ModuleType]:
    """Make the file the program, as `python FILE ARGS` would."""
    module = ModuleType("__main__")
    module.__file__ = str(path)
    main, argv, search = sys.modules["__main__"], sys.argv, list(sys.path)
    sys.modules["__main__"] = module
    sys.argv = [str(path), *args]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield module
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, search


def _run(code: CodeType, module: ModuleType, path: Path) -> None:
    said = _Copied(sys.stderr)
    try:
        with redirect_stderr(said):
            exec(code, module.__dict__)  # noqa: S102  running the job's own file is the point
    except SystemExit as error:
        if error.code:
            raise ArtifactError(_exit_sentence(path, error.code, said.getvalue())) from error
    except HeadwaterError as error:
        msg = f"job file is refused: {_where(path, error)}: {error}"
        raise ArtifactError(msg) from error
    except Exception as error:
        # A user's message may have many lines; the last says what was wrong.
        what = traceback.format_exception_only(error)[-1].strip()
        msg = f"job file raised {what}: {_where(path, error)}; correct it and submit again"
        raise ArtifactError(msg) from error


def _exit_sentence(path: Path, code: object, said: str) -> str:
    """What to say of a file that ended itself: what argparse wrote last, if it was that."""
    last = said.strip().rpartition("\n")[2]
    _, usage_error, complaint = last.partition(": error: ")
    if code == _USAGE and usage_error:
        return f"job file {path.name} refuses its arguments: {complaint}; pass others"
    return (
        f"job file {path.name} ended itself before env.execute(): got exit code {code!r}; "
        "check its arguments"
    )


class _Copied(io.StringIO):
    """Keeps what is written, and passes it on."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(text)
        return super().write(text)


def _where(path: Path, error: BaseException) -> str:
    """The last place in the job file that the error passed through."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f"{path.name}, line {lines[-1]}" if lines else path.name


def _pickle_by_value(folder: Path, known: set[str]) -> None:
    """Let modules that lie beside the job file travel with the graph: workers do not have them."""
    for name in sorted(set(sys.modules) - known):
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).resolve().is_relative_to(folder):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
