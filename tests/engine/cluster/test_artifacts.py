"""Programs that are taken in, kept by their content, built, and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from engine.cluster.programs import build
from engine.cluster.programs.artifacts import Artifacts
from engine.cluster.store.store import Store
from engine.errors import ArtifactError
from engine.rest.errors import NotFound
from engine.rest.model.requests import Program
from fixtures import programs

JOB = b"import engine as hw\n"


@pytest.fixture
def artifacts(tmp_path: Path) -> Iterator[Artifacts]:
    store = Store(tmp_path / "engine.db")
    yield Artifacts(tmp_path, store)
    store.close()


async def upload(artifacts: Artifacts, tmp_path: Path, name: str, content: bytes) -> str:
    given = tmp_path / f"given-{uuid4()}"  # uploads at once have a file each
    given.write_bytes(content)
    return (await artifacts.upload(name, given, 5)).id


def kept(tmp_path: Path) -> list[str]:
    folder = tmp_path / "artifacts"
    return sorted(
        path.relative_to(folder).as_posix().partition("/")[2]
        for path in folder.rglob("*")
        if path.is_file()
    )


async def test_the_same_content_is_kept_once(artifacts: Artifacts, tmp_path: Path) -> None:
    content = programs.zipped(programs.FILES)
    ids = [await upload(artifacts, tmp_path, name, content) for name in ("a.zip", "b.zip", "a.zip")]
    assert ids[0] == ids[2] != ids[1]
    assert kept(tmp_path) == sorted(["about.json", *(f"code/{name}" for name in programs.FILES)])


async def test_uploads_at_once_do_not_disturb_each_other(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    (tmp_path / "content").write_bytes(programs.zipped(programs.FILES))
    uploads = (artifacts.upload("a.zip", tmp_path / "content", 5) for _ in range(3))
    assert len({artifact.id for artifact in await asyncio.gather(*uploads)}) == 1
    assert len(list((tmp_path / "artifacts").iterdir())) == 1


async def test_the_same_bytes_may_be_a_job_file_and_an_archive(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    content = JOB + programs.zipped({"a.txt": "1"})
    await upload(artifacts, tmp_path, "job.py", content)
    await upload(artifacts, tmp_path, "job.zip", content)
    assert kept(tmp_path) == ["about.json", "about.json", "code/a.txt", "job.py"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "a.zip",
            b"no zip",
            "archive a.zip cannot be read: File is not a zip file; build it again",
        ),
        (
            "a.whl",
            programs.zipped({"../a": ""}),
            "archive a.whl is refused: entry '../a' leads out",
        ),
        (
            "a.zip",
            programs.zipped({"requirements.txt": "-e ."}),
            "requirements.txt has a line that",
        ),
    ],
)
async def test_what_is_refused_leaves_nothing_behind(
    artifacts: Artifacts, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    with pytest.raises(ArtifactError) as refused:
        await upload(artifacts, tmp_path, name, content)
    assert str(refused.value).startswith(sentence)
    assert list((tmp_path / "artifacts").iterdir()) == []


async def test_code_stays_as_long_as_a_job_needs_it(artifacts: Artifacts, tmp_path: Path) -> None:
    identity = await upload(artifacts, tmp_path, "a.zip", programs.zipped(programs.FILES))
    (folder,) = (tmp_path / "artifacts").iterdir()
    assert artifacts.unused([]) == []
    artifacts.delete(identity)
    with pytest.raises(NotFound):
        artifacts.delete(identity)
    assert artifacts.unused([str(folder / "code")]) == []
    assert artifacts.unused([]) == [folder]


async def test_a_program_that_eats_memory_is_refused(
    artifacts: Artifacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "RESIDENT_BYTES", 1 << 30)
    hungry = b"kept = []\nwhile True:\n    kept.append(b'x' * (32 << 20))\n"
    identity = await upload(artifacts, tmp_path, "job.py", hungry)
    with pytest.raises(ArtifactError, match=r"job file job.py needs more than 1 GiB to be built"):
        await artifacts.plan(Program(identity))


async def test_a_program_that_reserves_more_than_there_is_is_refused(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    identity = await upload(artifacts, tmp_path, "job.py", b"kept = bytearray(5 << 30)\n")
    with pytest.raises(ArtifactError, match=r"job file job.py needs more than 4 GiB to be built"):
        await artifacts.plan(Program(identity))
