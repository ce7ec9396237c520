"""Paths that clients name stay within the configured folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.checkpoint.inspection.reading import open_snapshot
from engine.checkpoint.inspection.verification import verify
from engine.cluster.answers.places import Places
from engine.errors import SnapshotCorrupt, StorageError
from engine.rest.errors import Forbidden
from golden_snapshots import formats, snapshots
from snapshot_folders import counts, save


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "savepoints"
    folder.mkdir()
    return folder


def places(root: Path, *recorded: str) -> Places:
    return Places(lambda: [str(root), "s3://bucket/saved"], lambda: recorded)


def test_a_snapshot_below_a_configured_folder_is_read(root: Path) -> None:
    path = save(root / "a" / "s", counts(("ann", 1)))
    place = places(root).place(path)
    assert verify(open_snapshot(place.url, place.open)).is_whole
    for scheme in ("file://", "file:"):
        assert places(root).place(f"{scheme}{path}").url == path
    assert places(root).place("s3://bucket/saved/x").url == "s3://bucket/saved/x"


@pytest.mark.parametrize(
    "given",
    [
        "/etc",
        "{root}/../secret",
        "file://{root}/../secret",
        "{root}-2/s",
        "s3://bucket/saved/../x",
        "s3://bucket/saved-2/x",
        "s3://other/saved/x",
        "{root}/link/s",
    ],
)
def test_a_path_that_leads_out_is_refused(given: str, root: Path) -> None:
    (root / "link").symlink_to(root.parent)
    with pytest.raises(Forbidden, match="lies outside of the folders that this engine shows"):
        places(root).place(given.format(root=root))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("of_format", range(len(formats())))
def test_a_checkpoint_is_read_with_the_files_that_it_shares(
    of_format: int, recorded: bool, root: Path, tmp_path: Path
) -> None:
    _, checkpoint = snapshots(formats()[of_format])
    known = places(root, str(checkpoint)) if recorded else places(checkpoint.parent)
    place = known.place(str(checkpoint))
    snapshot = open_snapshot(place.url, place.open)
    assert verify(snapshot).is_whole
    assert snapshot.collect(snapshot.scan(snapshot.state("priced", "orders"))).height == 6


def test_what_the_engine_wrote_elsewhere_can_be_looked_at(root: Path, tmp_path: Path) -> None:
    path = save(tmp_path / "mine" / "s", counts(("ann", 1)))
    place = places(root, path).place(path)
    assert verify(open_snapshot(place.url, place.open)).is_whole
    with pytest.raises(Forbidden):
        places(root, path).place(str(tmp_path / "mine"))


def test_a_file_that_is_a_link_to_elsewhere_is_not_read(root: Path, tmp_path: Path) -> None:
    path = Path(save(root / "s", counts(("ann", 1))))
    file = next(path.glob("*/counts*.parquet"))
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    place = places(root).place(str(path))
    (problem,) = verify(open_snapshot(place.url, place.open)).problems
    assert "is a link that leads out of" in problem
    (path / "_metadata").unlink()
    (path / "_metadata").symlink_to("/etc/passwd")
    with pytest.raises(SnapshotCorrupt, match="is a link that leads out of"):
        open_snapshot(place.url, place.open)


def test_links_in_a_circle_are_told(root: Path) -> None:
    (root / "s").symlink_to(root / "s")
    place = places(root).place(str(root / "s"))
    with pytest.raises(StorageError, match="cannot be read: Too many levels of symbolic links"):
        open_snapshot(place.url, place.open)
