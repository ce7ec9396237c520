"""Capture: run a program, and take the graph that it hands to `execute()`.

Needs    a process of its own: the file runs as `__main__`, with its arguments and its folder on the
         path, and stays loaded so that its functions can be pickled.
Errors   ArtifactError with one sentence for a program that cannot be read, does not compile,
         raises, exits, or submits no job or two.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import TextIO

import cloudpickle

from engine.errors import ArtifactError, HeadwaterError
from engine.graph.jobgraph import JobGraph
from engine.stream.calling import call
from engine.stream.recording import recording

ENGINE = Path(__file__).parents[1]

_USAGE = 2
"""What argparse exits with."""


@dataclass(frozen=True, slots=True)
class _Program:
    """What is captured: how people call it, and where its code lies."""

    name: str
    folder: Path
    """First on the path while it runs."""
    file: Path
    """What `sys.argv` begins with."""


def capture(
    path: Path,
    args: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    *,
    by_value: bool = True,
) -> JobGraph:
    """Run a job file with arguments and settings; return its graph. Raises ArtifactError.

    `by_value`: modules beside the file travel with the graph, because workers do not have them.
    """
    code = _compiled(path)
    program = _Program(f"job file {path.name}", path.resolve().parent, path)

    def run() -> None:
        known = set(sys.modules)
        _execute(code, path)
        if by_value:
            _pickle_by_value(program.folder, known)

    return _captured(program, args, settings, run)


def capture_module(
    name: str, folder: Path, args: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> JobGraph:
    """Run a module below a folder as `python -m NAME` would; return its graph.

    Workers must have the folder on their path. Raises ArtifactError.
    """
    program = _Program(f"module {name}", folder, folder)

    def run() -> None:
        spec = _spec_of(name)
        file = Path(spec.origin or name)
        sys.argv[0] = str(file)
        _execute(_code_of(spec, name), file, spec)

    return _captured(program, args, settings, run)


def capture_function(
    module: str,
    function: str,
    folder: Path,
    args: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> JobGraph:
    """Call a function of a module below a folder; return the graph of its job, see `calling`.

    Workers must have the folder on their path. Raises ArtifactError.
    """
    program = _Program(f"function {module}:{function}", folder, folder)

    def run() -> None:
        found: object = importlib.import_module(module)
        sys.argv[0] = str(getattr(found, "__file__", module))
        for part in function.split("."):
            found = getattr(found, part, None)
        call(found, f"{module}:{function}", args)

    return _captured(program, args, settings, run)


def _captured(
    program: _Program,
    args: Sequence[str],
    settings: Mapping[str, str] | None,
    run: Callable[[], None],
) -> JobGraph:
    with _as_main(program, args), recording(settings or {}) as recorded:
        _guarded(run, program)
    if len(recorded.graphs) != 1:
        count = len(recorded.graphs)
        msg = (
            f"{program.name} submits no job; end it with env.execute()"
            if count == 0
            else f"{program.name} submits {count} jobs; write one job per file"
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
        raise _not_python(path.name, error) from error


def _not_python(name: str, error: SyntaxError | ValueError) -> ArtifactError:
    line = error.lineno if isinstance(error, SyntaxError) else None
    where = name if line is None else f"{name}, line {line}"
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    msg = f"job file has a syntax error: {where}: {reason}; correct it and submit again"
    return ArtifactError(msg)


def _spec_of(name: str) -> ModuleSpec:
    """What `python -m NAME` runs. Raises ArtifactError."""
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    if spec is None:
        msg = (
            f"module {name} cannot be run: it is not there, or is a package without __main__.py"
            "; name the entry, e.g. package.module:function"
        )
        raise ArtifactError(msg)
    return spec


def _code_of(spec: ModuleSpec, name: str) -> CodeType:
    code = getattr(spec.loader, "get_code", lambda _: None)(spec.name)
    if not isinstance(code, CodeType):
        msg = f"module {name} cannot be run: it is not Python code; name another one"
        raise ArtifactError(msg)
    return code


@contextmanager
def _as_main(program: _Program, args: Sequence[str]) -> Iterator[None]:
    """Make it the program, as `python FILE ARGS` would."""
    main, argv, search = sys.modules["__main__"], sys.argv, list(sys.path)
    sys.argv = [str(program.file), *args]
    sys.path.insert(0, str(program.folder))
    try:
        yield
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, search


def _execute(code: CodeType, file: Path, spec: ModuleSpec | None = None) -> None:
    module = ModuleType("__main__")
    module.__file__ = str(file)
    if spec is not None:
        module.__spec__, module.__package__ = spec, spec.parent
    sys.modules["__main__"] = module
    exec(code, module.__dict__)  # noqa: S102  running the job's own code is the point


def _guarded(run: Callable[[], None], program: _Program) -> None:
    """Run user code; whatever it raises becomes one sentence."""
    said = _Copied(sys.stderr)
    try:
        with redirect_stderr(said):
            run()
    except SystemExit as error:
        if error.code:
            raise ArtifactError(_exit_sentence(program, error.code, said.getvalue())) from error
    except HeadwaterError as error:
        where = _where(program, error)
        msg = str(error) if where is None else f"job file is refused: {where}: {error}"
        raise ArtifactError(msg) from error
    except SyntaxError as error:
        raise _not_python(_shown(error.filename or "", program), error) from error
    except MemoryError:
        raise
    except Exception as error:
        # A user's message may have many lines; the last says what was wrong.
        what = traceback.format_exception_only(error)[-1].strip()
        where = _where(program, error) or program.name
        msg = f"job file raised {what}: {where}; correct it and submit again"
        raise ArtifactError(msg) from error


def _exit_sentence(program: _Program, code: object, said: str) -> str:
    """What to say of a program that ended itself: what argparse wrote last, if it was that."""
    last = said.strip().rpartition("\n")[2]
    _, usage_error, complaint = last.partition(": error: ")
    if code == _USAGE and usage_error:
        return f"{program.name} refuses its arguments: {complaint}; pass others"
    return (
        f"{program.name} ended itself before env.execute(): got exit code {code!r}; "
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


def _where(program: _Program, error: BaseException) -> str | None:
    """The last place in the program's own code that the error passed through."""
    frames = traceback.extract_tb(error.__traceback__)[::-1]
    lines = [frame for frame in frames if frame.filename == str(program.file)]
    lines += [frame for frame in frames if _is_below(frame.filename, program.folder)]
    return f"{_shown(lines[0].filename, program)}, line {lines[0].lineno}" if lines else None


def _is_below(file: str, folder: Path) -> bool:
    """Whether it is code of the program, and not the engine's, which may lie there too."""
    path = Path(file)
    return path.is_absolute() and path.is_relative_to(folder) and not path.is_relative_to(ENGINE)


def _shown(file: str, program: _Program) -> str:
    """A file of the program as its author knows it."""
    below = _is_below(file, program.folder)
    return str(Path(file).relative_to(program.folder)) if below else Path(file).name


def _pickle_by_value(folder: Path, known: set[str]) -> None:
    """Let modules that lie beside the job file travel with the graph: workers do not have them."""
    for name in sorted(set(sys.modules) - known):
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).resolve().is_relative_to(folder):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
