"""What an archive may hold: nothing of one that is refused is written."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ArtifactError
from engine.programs import archive
from engine.programs.archive import unpack


def entry(name: str, kind: int = stat.S_IFREG) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("placeholder")
    info.filename = info.orig_filename = name
    info.external_attr = (kind | 0o644) << 16
    return info


def packed(*entries: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        for info, content in entries:
            opened.writestr(info, content)
    return buffer.getvalue()


def unpacked(content: bytes, tmp_path: Path) -> dict[str, bytes]:
    (tmp_path / "a.zip").write_bytes(content)
    (tmp_path / "out").mkdir()
    unpack(tmp_path / "a.zip", tmp_path / "out", "a.zip")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    return {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in files}


def test_files_come_out_as_they_were(tmp_path: Path) -> None:
    files = {"a.py": b"1", "flights/größen/höhe ✈.py": b"2", "flights/empty": b""}
    content = packed(*files.items(), (entry("folder/", stat.S_IFDIR), b""))
    assert unpacked(content, tmp_path) == files


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry("/etc/passwd"), "leads out of the archive"),
        (entry("../job.py"), "leads out of the archive"),
        (entry("a/../../job.py"), "leads out of the archive"),
        (entry("..\\job.py"), "leads out of the archive"),
        (entry("C:job.py"), "leads out of the archive"),
        (entry("job.py\x00.txt"), "has a name that cannot be written"),
        (entry("a\nb.py"), "has a name that cannot be written"),
        (entry("n" * 256), "has a name that cannot be written"),
        (entry("."), "has a name that cannot be written"),
        (entry("link", stat.S_IFLNK), "is a link or a device"),
        (entry("pipe", stat.S_IFIFO), "is a link or a device"),
        (entry("good.py/below"), "is a file and a folder at once"),
    ],
    ids=lambda value: repr(getattr(value, "filename", ""))[:20],
)
def test_an_entry_that_is_no_harmless_file_refuses_the_archive(
    tmp_path: Path, bad: zipfile.ZipInfo, reason: str
) -> None:
    with pytest.raises(ArtifactError, match=f"archive a.zip is refused: entry .* {reason}"):
        unpacked(packed(("good.py", b"1"), (bad, b"2")), tmp_path)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"entry './a.py' is there twice"):
        unpacked(packed(("a.py", b"1"), ("./a.py", b"2")), tmp_path)


def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="grows too much"):
        unpacked(packed(("zeros", bytes(archive.RATIO_MATTERS_BYTES + 1))), tmp_path)
    assert list((tmp_path / "out").iterdir()) == []


def test_what_shrinks_much_but_is_small_is_taken(tmp_path: Path) -> None:
    assert len(unpacked(packed(("zeros", bytes(1 << 20))), tmp_path)["zeros"]) == 1 << 20


@pytest.mark.parametrize("limit", ["MAX_ENTRIES", "MAX_BYTES"])
def test_the_limits_hold_at_their_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(archive, limit, 2)
    content = packed(("a", b"1"), ("b", b"2"))
    assert len(unpacked(content, tmp_path)) == 2
    monkeypatch.setattr(archive, limit, 1)
    (tmp_path / "again").mkdir()
    with pytest.raises(ArtifactError, match=r"got 2( bytes)?; at most 1"):
        unpacked(content, tmp_path / "again")


def test_an_entry_that_says_less_than_it_holds_is_refused(tmp_path: Path) -> None:
    content = bytearray(packed(("a", b"x" * 5_000)))
    for at in (22, content.index(b"PK\x01\x02") + 24):  # the size, in both places
        content[at : at + 4] = (5).to_bytes(4, "little")
    with pytest.raises(ArtifactError, match=r"archive a.zip cannot be read: Bad CRC-32"):
        unpacked(bytes(content), tmp_path)


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 300), byte=st.integers(0, 255), cut=st.integers(0, 300))
def test_damage_of_any_kind_is_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, cut: int
) -> None:
    content = bytearray(packed(("a/b.py", b"print(1)"), ("c.py", b"print(2)" * 9)))
    content[at % len(content)] = byte
    folder = tmp_path_factory.mktemp("damage")
    sentence = ""
    try:
        unpacked(bytes(content[: len(content) - cut]), folder)
    except ArtifactError as error:
        sentence = str(error)
    assert "\n" not in sentence
