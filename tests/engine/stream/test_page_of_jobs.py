"""The page for authors of jobs: its blocks are one job that runs, and it tells of every name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import engine as hw
from engine import evictors, triggers, windows
from engine.aggregates import declared
from engine.stream import Environment, KeyedStream, Stream, WindowedStream, capture
from engine.testing.simulation import CALM, simulate

PAGE = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()
CODE = re.findall(r"`([^`\n]+)`", PAGE)
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

INNER = {
    Environment: {"graph", "add", "replace", "set_chaining", "sink_operator"},
    Stream: {"shape", "with_schema"},
    KeyedStream: {"key_types", "partitioned"},
    WindowedStream: set(),
}
"""What is public for the engine, but nothing for authors."""


def tells(name: str) -> bool:
    return re.search(rf"\b{name}\b", " ".join([*CODE, *BLOCKS])) is not None


def test_the_blocks_are_one_job_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.py").write_text("\n\n".join(BLOCKS))
    simulate(lambda parallelism, output: capture(tmp_path / "page.py"), 0, CALM)
    printed = capsys.readouterr().out
    assert printed.startswith("job shop\n")
    labels = {
        line.partition(":")[0] for line in printed.splitlines() if re.match(r"\w+:\d> ", line)
    }
    wanted = {"small", "spent", "big", "two", "charged", "sums", "words", "prices"}
    assert labels == wanted


@pytest.mark.parametrize("name", hw.__all__)
def test_the_page_tells_of_each_public_name(name: str) -> None:
    assert tells(name)


@pytest.mark.parametrize("kind", INNER)
def test_the_page_tells_of_each_step(kind: type) -> None:
    steps = {
        name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))
    }
    assert [step for step in sorted(steps - INNER[kind]) if not tells(step)] == []


@pytest.mark.parametrize("module", [triggers, evictors, windows, declared])
def test_the_page_tells_of_each_maker(module: object) -> None:
    makers = {
        name
        for name, value in vars(module).items()
        if callable(value)
        and getattr(value, "__module__", "").startswith(module.__name__)
        and name.islower()
        and not name.startswith("_")
    }
    assert makers
    assert [name for name in sorted(makers) if not tells(name)] == []
