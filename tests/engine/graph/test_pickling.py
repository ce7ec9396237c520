"""How a job graph travels to its workers."""

from __future__ import annotations

import pickle
import threading
import traceback
from pathlib import Path

import pytest

from engine.errors import GraphError
from engine.graph.pickling import pickled
from engine.stream import capture

JOB = """
import polars as pl
import engine as hw
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink

def broken(row):
    raise ValueError("no")

env = hw.Environment("broken")
env.source(FrameSource(pl.DataFrame({"a": [1]}))).map(broken).sink(PrintSink())
env.execute()
"""


def test_a_function_of_a_job_file_keeps_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(JOB)
    graph = pickle.loads(pickled(capture(tmp_path / "broken.py")))
    function = graph.vertices[0].operators[1].operator.function
    with pytest.raises(ValueError, match="no") as caught:
        function({})
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == (
        str(tmp_path / "broken.py"),
        8,
        'raise ValueError("no")',
    )


def test_what_cannot_travel_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(JOB)
    graph = capture(tmp_path / "broken.py")
    graph.vertices[0].operators[1].operator.function = threading.Lock()
    with pytest.raises(GraphError, match=r"job 'broken' cannot be sent.*cannot pickle.*let its"):
        pickled(graph)
