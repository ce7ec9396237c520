"""Every answer has the shape of the one that a real Flink gave to the same request.

Where we differ, the difference is listed with its reason; a listed difference that is gone fails
too, so the lists can only shrink knowingly.
"""

from __future__ import annotations

import httpx
import pytest

from engine.testing.fake_values import SOURCE_ID, WINDOW_ID
from flink_captures import REQUESTS, capture, differences
from flink_routes import DIFFERENT, GETS


@pytest.mark.parametrize("name", GETS)
async def test_an_answer_has_flinks_shape(
    name: str, http: httpx.AsyncClient, job: str, artifact: str
) -> None:
    path = GETS[name].format(job=job, source=SOURCE_ID, window=WINDOW_ID, artifact=artifact)
    answer = await http.get(path)
    assert answer.status_code == REQUESTS[name][2]
    assert differences(answer.json(), capture(name)) == set(DIFFERENT.get(name, ()))


@pytest.mark.parametrize("name", GETS)
def test_the_captured_request_is_the_one_that_is_compared(name: str) -> None:
    method, recorded, _ = REQUESTS[name]
    assert method == "GET"
    ours = GETS[name].partition("?")[0].removeprefix("/v1").strip("/").split("/")
    theirs = recorded.partition("?")[0].removeprefix("/v1").strip("/").split("/")
    fixed = [part for part in ours if part.isalpha()]
    assert len(ours) == len(theirs)
    assert [part for part in theirs if part.isalpha()] == fixed


async def test_both_prefixes_give_the_same(http: httpx.AsyncClient, job: str) -> None:
    bare, versioned = await http.get("/jobs"), await http.get("/v1/jobs")
    assert bare.json() == versioned.json() == {"jobs": [{"id": job, "status": "RUNNING"}]}
