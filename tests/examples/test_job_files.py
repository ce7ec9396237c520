"""The demo's job files: what graph they give, and that version 2 fits the state of version 1."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from engine.errors import ArtifactError
from engine.graph.plan import Plan, plan_of
from engine.stream import capture
from examples.truth import EXAMPLES


def plan(file: str, *args: str, parallelism: int = 1) -> Plan:
    settings = {"parallelism.default": str(parallelism)}
    return plan_of(capture(EXAMPLES / file, args, settings))


def operators(plan: Plan) -> dict[str, object]:
    return {op.uid: (op.kind, op.states) for vertex in plan.vertices for op in vertex.operators}


def test_version_2_has_the_operators_and_states_of_version_1() -> None:
    assert operators(plan("flights.py")) == operators(plan("flights_v2.py"))


def test_version_2_changes_one_line_of_code() -> None:
    texts = [
        (EXAMPLES / name).read_text().split('"""', 2)[2] for name in ("flights.py", "flights_v2.py")
    ]
    changed = [
        line
        for line in unified_diff(*(text.splitlines() for text in texts), n=0)
        if line.startswith(("+ ", "- "))
    ]
    assert [line[0] for line in changed] == ["-", "+"]
    assert all("delay=" in line for line in changed)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_flights_are_shuffled_once(parallelism: int) -> None:
    first, second = plan("flights.py", parallelism=parallelism).vertices
    assert [first.parallelism, second.parallelism] == [parallelism, parallelism]
    assert second.operators[0].uid == "daily"


def test_sensors_read_their_control_in_one_place() -> None:
    vertices = plan("sensors.py", parallelism=2).vertices
    (control,) = (vertex for vertex in vertices if vertex.operators[0].uid == "control")
    assert control.parallelism == 1


def test_without_points_only_files_are_written() -> None:
    uids = operators(plan("flights.py", "--no-points"))
    assert "daily-files" in uids
    assert "daily-points" not in uids


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--speed", "-1"), "speed must be positive: got -1.0"),
        (("--data", "nowhere.parquet"), "recording does not exist: .*nowhere.parquet"),
        (("--anchor", "2026-01-01"), "anchor has no time zone"),
    ],
)
def test_a_wrong_argument_gives_one_sentence(args: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ArtifactError, match=sentence) as error:
        plan("flights.py", *args)
    assert "\n" not in str(error.value)


def test_the_recording_is_found_when_only_the_job_file_was_uploaded(tmp_path: Path) -> None:
    uploaded = tmp_path / "flights.py"
    uploaded.write_bytes((EXAMPLES / "flights.py").read_bytes())
    assert plan_of(capture(uploaded)).name == "flights"
