"""The catalogue against what is stored, both ways."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from controlplane.access.errors import Refused
from controlplane.backends import local_storage
from controlplane.backends.errors import EngineAway, EngineRefused
from controlplane.snapshots import strays
from controlplane.snapshots.actions import import_savepoint, request_savepoint
from controlplane.snapshots.models import Savepoint, StorageScan, StrayFolder


def test_files_without_a_row_are_found_with_the_job_they_are_named_after(
    make, engine, lab, clock, root, running
):
    make(0)
    engine.leave(str(root / "flights" / "77aa" / "savepoint-9"), 512)
    engine.leave(str(root / "gone" / "77aa" / "savepoint-9"))
    strays.scan(lab, clock())

    named, nameless = StrayFolder.objects.order_by("location")
    assert (named.job, named.is_complete, named.size_bytes) == (running, False, 512)
    assert nameless.job is None
    assert StorageScan.objects.get().folders == 3


def test_a_row_whose_files_are_gone_is_noted_and_forgiven_when_they_are_back(
    make, engine, lab, clock
):
    savepoint = make(0)
    kept = engine.savepoints.pop(savepoint.location)
    strays.scan(lab, clock())
    savepoint.refresh_from_db()
    assert savepoint.missing_since == clock()

    engine.savepoints[savepoint.location] = kept
    strays.scan(lab, clock() + timedelta(hours=1))
    savepoint.refresh_from_db()
    assert savepoint.missing_since is None


def test_what_lies_elsewhere_is_asked_for_by_itself(make, engine, lab, clock):
    there, gone = make(0, location="/mnt/a"), make(1, location="/mnt/b")
    engine.lose("/mnt/b")
    strays.scan(lab, clock())
    there.refresh_from_db(), gone.refresh_from_db()
    assert (there.missing_since, gone.missing_since) == (None, clock())


def test_what_is_being_taken_is_no_stray(running, alice, engine, lab, clock, root):
    operation = request_savepoint(running, alice)
    engine.leave(str(root / "flights" / operation.pk.hex[:12] / "savepoint-1"))
    strays.scan(lab, clock())
    assert not StrayFolder.objects.exists()


def test_storage_that_cannot_be_listed_changes_nothing_and_says_so(make, engine, lab, clock):
    savepoint = make(0)
    engine.lose(savepoint.location)
    engine.storage = lambda: "disk does not answer"
    strays.scan(lab, clock())
    savepoint.refresh_from_db()
    assert savepoint.missing_since is None
    assert StorageScan.objects.get().problem == "disk does not answer"

    engine.storage = lambda: ""
    engine.fail("savepoint", EngineAway("nobody answers"))
    Savepoint.objects.update(location="/mnt/elsewhere")
    strays.scan(lab, clock())
    assert StorageScan.objects.get().problem == "nobody answers"


def test_a_stray_is_adopted_as_an_import(running, alice, engine, lab, clock, make, drive):
    savepoint = make(0)
    Savepoint.objects.all().delete()
    strays.scan(lab, clock())
    stray = StrayFolder.objects.get()
    with pytest.raises(Refused, match="adopt it, then delete it as one"):
        strays.clear_stray(stray, alice)

    drive(import_savepoint(running, alice, stray.location))
    strays.scan(lab, clock())
    assert not StrayFolder.objects.exists()
    assert Savepoint.objects.get().location == savepoint.location


def test_remains_are_removed_by_an_operator(running, alice, bob, engine, lab, clock, root):
    engine.leave(str(root / "flights" / "77aa" / "savepoint-9"))
    strays.scan(lab, clock())
    stray = StrayFolder.objects.get()
    with pytest.raises(Refused, match="needs the operator role"):
        strays.clear_stray(stray, bob)
    strays.clear_stray(stray, alice, "left by a crash")
    assert not engine.remains
    assert not StrayFolder.objects.exists()


@pytest.fixture
def tree(tmp_path):
    """A folder of savepoints: one complete, one without a manifest, one empty."""
    for name, files in (("a", ("_metadata", "s.parquet")), ("b", ("s.parquet",)), ("c", ())):
        folder = tmp_path / "flights" / "0a1b" / name / "uid"
        folder.mkdir(parents=True)
        for file in files:
            (folder if file != "_metadata" else folder.parent).joinpath(file).write_text("12345")
    return tmp_path


def test_a_folder_on_disk_is_listed_with_sizes(tree):
    found = local_storage.stored(tree)
    assert [(one.location[-1], one.is_complete, one.size_bytes) for one in found] == [
        ("a", True, 10),
        ("b", False, 5),
    ]
    assert local_storage.stored(tree / "nothing") == ()


def test_only_remains_below_the_root_are_removed_from_disk(tree):
    outside = tree.parent / "precious"
    outside.mkdir()
    link = tree / "flights" / "0a1b" / "link"
    link.symlink_to(outside)
    for place in (tree / "flights/0a1b/a", tree / "flights", link, outside, tree / "x/../../y/z"):
        with pytest.raises(EngineRefused, match="is not removed"):
            local_storage.clear(str(place), tree)
    local_storage.clear(str(tree / "flights/0a1b/b"), tree)

    assert not (tree / "flights/0a1b/b").exists()
    assert (tree / "flights/0a1b/a/_metadata").exists()
    assert outside.exists()


def test_a_scan_removes_folders_that_have_been_empty_for_long(lab, clock, root):
    old, young = root / "flights" / "0a1b" / "savepoint-1", root / "flights" / "2c3d"
    used = root / "flights" / "4e5f" / "savepoint-2"
    for folder in (old, young, used):
        folder.mkdir(parents=True)
    (used / "s.parquet").write_text("12345")
    long_ago = (clock() - timedelta(hours=3)).timestamp()
    for folder in (used, used.parent, old, old.parent):
        os.utime(folder, (long_ago, long_ago))
    os.utime(young, (clock().timestamp(), clock().timestamp()))

    strays.scan(lab, clock())
    assert (young.exists(), (used / "s.parquet").exists()) == (True, True)
    assert not old.exists()
    os.utime(old.parent, (long_ago, long_ago))
    strays.scan(lab, clock())
    assert not old.parent.exists()
