"""How a job graph travels to its workers: pickled, with the code of the job file in it.

Shapes   functions and classes of the job file itself travel by value, what can be imported by name.
Errors   tracebacks of functions by value keep the file and line they were written in; the library
         would say "<dynamic-code>", of no use to their author.
"""

from __future__ import annotations

import io
from collections import ChainMap
from collections.abc import Callable
from types import CodeType
from typing import Any, cast

import cloudpickle

from engine.errors import GraphError
from engine.graph.jobgraph import JobGraph

_NAMELESS = "<dynamic-code>"
_Reduce = Callable[[CodeType], tuple[Any, tuple[Any, ...]]]
_reduce_code = cast("_Reduce", cloudpickle.Pickler.dispatch_table[CodeType])


def pickled(graph: JobGraph) -> bytes:
    """Pickle a graph. Raises GraphError when something in it cannot travel."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump(graph)  # type: ignore[no-untyped-call]
    except MemoryError:
        raise
    except Exception as error:
        msg = (
            f"job {graph.name!r} cannot be sent to its workers: {type(error).__name__}: {error}; "
            "let its functions open files, locks and connections themselves"
        )
        raise GraphError(msg) from error
    return buffer.getvalue()


def _code(code: CodeType) -> tuple[Any, ...]:
    """What the library makes of a code object, with its file."""
    make, parts = _reduce_code(code)
    named = (
        code.co_filename if isinstance(part, str) and part == _NAMELESS else part for part in parts
    )
    return make, tuple(named)


class _Pickler(cloudpickle.Pickler):
    dispatch_table = ChainMap({CodeType: _code}, cloudpickle.Pickler.dispatch_table)
