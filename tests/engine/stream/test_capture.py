"""Capture: a job file becomes a graph, or one sentence that says what is wrong with it."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import cloudpickle
import pytest

from engine.cluster.jobs.rescale import RESCALE
from engine.errors import ArtifactError, ConfigError
from engine.graph.plan import plan_of
from engine.state.budget import BLOCK_CACHE_RATIO, PER_OPERATOR, WRITE_BUFFER_RATIO
from engine.stream import capture, setting_names
from engine.stream.recording import environment_settings, recording
from engine.stream.setting_names import KNOWN, OURS

JOB = """
import argparse
import polars as pl
import engine as hw
from engine import agg, windows
from engine.connectors.collect import CollectSink
from engine.testing.memory import MemorySource

parser = argparse.ArgumentParser()
parser.add_argument("--name", default="sensors")
arguments = parser.parse_args()
frame = pl.DataFrame(schema={"sensor": pl.String, "value": pl.Float64, "time": pl.Int64})

class Doubles(hw.KeyedProcessFunction):
    total = hw.ValueState(float, default=0.0)
    def process(self, row, ctx):
        yield row | {"value": row["value"] * 2}

env = hw.Environment(arguments.name, checkpoint_interval="5s")
source = MemorySource({"all": frame})
stream = env.source(source, uid="sensors", watermarks=hw.monotonic("time"))
stream.key_by("sensor").process(Doubles(), uid="doubles").sink(CollectSink("/out/x"), uid="out")
if __name__ == "__main__":
    env.execute()
"""


@pytest.fixture
def write(tmp_path):
    def written(text, name="job.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return written


def test_a_job_file_runs_as_the_program_with_its_arguments(write):
    before = sys.argv, sys.modules["__main__"], list(sys.path)
    graph = capture(write(JOB), ["--name", "other"])
    assert graph.name == "other"
    assert (sys.argv, sys.modules["__main__"], list(sys.path)) == before


def test_a_graph_is_pickled_with_the_functions_of_its_file(write):
    raw = cloudpickle.dumps(capture(write(JOB)))
    assert plan_of(cloudpickle.loads(raw)).operators[-2].uid == "doubles"


def test_settings_of_the_submission_win_over_the_file(write):
    settings = {
        "parallelism.default": "3",
        "execution.checkpointing.interval": "250",
        "pipeline.max-parallelism": "12",
    }
    plan = plan_of(capture(write(JOB), [], settings))
    assert {vertex.parallelism for vertex in plan.vertices} == {3}
    assert (plan.checkpoint_interval_ms, plan.max_parallelism) == (250, 12)


def test_the_interval_of_the_file_holds_without_settings(write):
    assert plan_of(capture(write(JOB))).checkpoint_interval_ms == 5000


def test_all_sinks_of_a_replay_write_beside_their_targets(write):
    live = plan_of(capture(write(JOB))).operators[-1]
    shadow = plan_of(capture(write(JOB), [], {"headwater.sinks.shadow": "r-1"})).operators[-1]
    assert live.description["target"] == "/out/x"
    assert shadow.description["target"] == "/out/x@r-1"


def test_a_module_beside_the_job_file_is_found_and_travels_with_the_graph(write):
    write("def half(row):\n    return row | {'value': row['value'] / 2}\n", "halving_of_rows.py")
    path = write(
        JOB.replace("import argparse", "import argparse\nimport halving_of_rows").replace(
            "stream.key_by", "stream.map(halving_of_rows.half).key_by"
        )
    )
    graph = capture(path)
    raw = cloudpickle.dumps(graph)
    del sys.modules["halving_of_rows"]
    function = cloudpickle.loads(raw).vertices[0].operators[1].operator.function
    assert function({"value": 4}) == {"value": 2}


FAULTS = {
    "syntax": ("x = (\n", r"job file has a syntax error: job.py, line 1: '\(' was never closed"),
    "null byte": ("x = 1\0", "job file has a syntax error: job.py"),
    "no job": ("x = 1\n", r"job file job.py submits no job; end it with env.execute\(\)"),
    "two jobs": (JOB + "    env.execute()\n", "job file job.py submits 2 jobs"),
    "exception": (
        "def f():\n    return 1 / 0\n\nf()\n",
        "job file raised ZeroDivisionError: division by zero: job.py, line 2; correct it",
    ),
    "exception without text": (
        "raise KeyError\n",
        "job file raised KeyError: job.py, line 1; correct",
    ),
    "graph error": (
        JOB.replace('key_by("sensor")', 'key_by("sensr")'),
        "job file is refused: job.py, line 22: key_by names an unknown column: got 'sensr'",
    ),
    "exit": (
        "import sys\nsys.exit('no data')\n",
        "ended itself before env.execute.*: got exit code 'no data'",
    ),
    "missing module": (
        "import no_such_module\n",
        "job file raised ModuleNotFoundError: No module named 'no_such_module': job.py, line 1",
    ),
}


@pytest.mark.parametrize(("text", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_job_file_is_refused_with_one_sentence(write, text, sentence):
    with pytest.raises(ArtifactError, match=sentence) as caught:
        capture(write(text))
    assert "\n" not in str(caught.value)


def test_arguments_that_the_file_does_not_know_are_refused(write, capsys):
    with pytest.raises(
        ArtifactError, match=r"job.py refuses its arguments: unrecognized arguments: --speed 2"
    ):
        capture(write(JOB), ["--speed", "2"])
    assert "unrecognized arguments: --speed 2" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match=r"cannot be read: No such file"):
        capture(tmp_path / "job.py")


@pytest.mark.parametrize("key", ["parallelism.default", "pipeline.max-parallelism"])
def test_a_setting_that_is_not_a_number_is_refused(write, key):
    with pytest.raises(ArtifactError, match=rf"setting {key} is not a positive number: got 'two'"):
        capture(write(JOB), [], {key: "two"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("state.backendd", "state.backend"),
        ("execution.checkpointing.intervall", "execution.checkpointing.interval"),
        ("parallelism", "parallelism.default"),
    ],
)
def test_a_misspelt_setting_is_told_with_what_was_meant(name: str, meant: str) -> None:
    told = pytest.raises(ConfigError, match=f"'{name}' is not known.*did you mean {meant}")
    with told, recording({name: "1"}):
        pass
    with pytest.raises(ConfigError, match="would have no effect"):
        environment_settings({"HEADWATER_SETTINGS": f"{name}=1"})


def test_the_names_that_are_known_are_those_that_the_engine_reads() -> None:
    ours = "|".join(map(re.escape, OURS))
    read = {PER_OPERATOR, WRITE_BUFFER_RATIO, BLOCK_CACHE_RATIO}  # put together from parts
    for file in Path(setting_names.__file__).parents[1].rglob("*.py"):
        if file != Path(setting_names.__file__):
            read.update(re.findall(rf'"((?:{ours})(?:\.[a-z-]+)*)"', file.read_text()))
    beginnings = {name for name in read if any(known.startswith(f"{name}.") for known in KNOWN)}
    made_of_parts = {name for name in KNOWN if name.rpartition(".")[0] in beginnings - OURS}
    assert read - beginnings - {RESCALE} <= KNOWN  # that one the engine gives to itself
    assert read | made_of_parts >= KNOWN
