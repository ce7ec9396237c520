"""On one SQLite file, a request with a key holds no lock while it asks an engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).parents[2] / "keyed_requests.py"


def test_others_write_meanwhile_and_it_is_done_once_also_over_a_death(tmp_path):
    kept = {name: value for name, value in os.environ.items() if "HEADWATER" not in name}
    answer = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=kept | {"HEADWATER_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told = json.loads(answer.stdout)

    assert (told["meanwhile"], told["asked still"]) == (201, True)
    first, again = told["both"][0], told["again"][0]
    assert (first[0], again[0]) == (201, 201)
    assert told["both"] == [first] * 2
    assert told["asked"] == 1
    assert (told["died"], told["after its death"]) == (9, [1, 1])
    assert told["again"] == [again] * 2
    assert again != first
    assert told["written"] == 2
