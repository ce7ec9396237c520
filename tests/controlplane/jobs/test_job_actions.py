"""Creating jobs and versions, changing settings; artifacts; what is refused."""

from __future__ import annotations

import hashlib

import pytest

from controlplane.access.errors import Refused
from controlplane.access.models import Membership, Role
from controlplane.audit.models import AuditEntry
from controlplane.jobs import actions, artifacts
from controlplane.jobs.models import Job, JobVersion
from controlplane.jobs.settings import settings_from, split_arguments
from fixtures import programs

CODE = b"import engine as hw\n"


def test_a_job_is_created_with_its_first_version(team, alice, lab):
    job = actions.create_job("flights", team, alice, "flights.py", CODE, {"parallelism": 2}, "one")

    version = job.versions.get()
    assert (version.number, version.filename, version.note) == (1, "flights.py", "one")
    assert version.checksum == hashlib.sha256(CODE).hexdigest()
    assert version.artifact.read_bytes() == CODE
    assert job.settings["parallelism"] == 2
    assert AuditEntry.objects.get(action="job.create").actor == alice


def test_versions_are_numbered_and_keep_their_own_file(flights, alice):
    second = actions.add_version(flights, alice, "flights.py", CODE + b"# 2\n")

    assert [version.number for version in flights.versions.all()] == [2, 1]
    assert second.artifact.read_bytes().endswith(b"# 2\n")


def test_the_same_file_is_kept_once(flights, alice):
    one = actions.add_version(flights, alice, "a.py", CODE)
    two = actions.add_version(flights, alice, "b.py", CODE)

    assert one.artifact == two.artifact


def test_a_file_that_was_damaged_on_disk_is_mended_by_another_upload(flights, alice):
    version = actions.add_version(flights, alice, "a.py", CODE + b"# damaged\n")
    version.artifact.write_bytes(b"")
    assert not artifacts.is_whole(version.artifact, version.checksum)

    actions.add_version(flights, alice, "a.py", CODE + b"# damaged\n")
    assert artifacts.is_whole(version.artifact, version.checksum)


def test_a_damaged_file_is_not_given_to_an_engine(flights, alice, engine, drive):
    version = actions.add_version(flights, alice, "a.py", CODE + b"# altered\n")
    version.artifact.write_bytes(b"import os\n")
    operation = drive(actions.deploy(flights, alice, version))

    assert "is gone or was altered" in operation.error
    assert not engine.artifacts


def test_a_taken_name_is_refused_beside_its_field(flights, team, alice):
    with pytest.raises(Refused, match="job name flights is taken") as refused:
        actions.create_job("flights", team, alice, "flights.py", CODE)
    assert refused.value.fields == {"name": refused.value.message}


@pytest.mark.parametrize(
    "name", ["", "-x", "x-", "Flights", "a b", "a/b", "x" * 65, "jobs@r-1", "jobs\n"]
)
def test_a_name_that_cannot_be_in_an_address_is_refused(team, alice, lab, name):
    with pytest.raises(Refused, match="small letters, digits and dashes"):
        actions.create_job(name, team, alice, "flights.py", CODE)
    assert not Job.objects.exists()


def test_a_name_that_is_the_address_of_a_page_is_refused(team, alice, lab):
    with pytest.raises(Refused, match="job name deploy is reserved"):
        actions.create_job("deploy", team, alice, "flights.py", CODE)


def test_a_syntax_error_is_told_with_its_line_and_nothing_is_created(team, alice, lab):
    with pytest.raises(Refused) as refused:
        actions.create_job("flights", team, alice, "flights.py", b"import engine\nx = (1,\n")
    assert refused.value.message == (
        "flights.py cannot be read: '(' was never closed in line 2; correct it and upload it again"
    )
    assert not Job.objects.exists()


def test_a_file_is_never_run_when_it_is_checked(team, alice, lab, tmp_path):
    trap = f"open({str(tmp_path / 'trap')!r}, 'w')\n".encode()
    actions.create_job("trap", team, alice, "trap.py", trap)

    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize(
    ("filename", "content", "sentence"),
    [
        ("flights.tar", CODE, "a Python file, a zip, a wheel or a jar: got 'flights.tar'"),
        (".py", CODE, "must be a Python file"),
        ("flights.py", b"", "is empty"),
        ("flights.py", b"\x00\x01", "cannot be read"),
        ("flights.py", b"\xff\xfe\xfa", "cannot be read"),
        ("flights.py", b"-" * 100_000 + b"1", "nested too deeply"),
        ("flights.py", b"x" + b".a" * 100_000, "nested too deeply"),
        ("flights.zip", CODE, "flights.zip cannot be read: it is not an archive"),
        ("flights.py", b"#" * (16 * 1024 * 1024 + 1), "is too large: 16,777,217 bytes"),
    ],
)
def test_files_that_are_no_jobs_are_refused(flights, alice, filename, content, sentence):
    with pytest.raises(Refused, match=sentence):
        actions.add_version(flights, alice, filename, content)
    assert JobVersion.objects.count() == 1


@pytest.mark.parametrize("filename", ["flights.zip", "flights-1.0-py3-none-any.whl"])
def test_an_archive_is_a_version_as_it_is(flights, alice, filename):
    content = programs.zipped(programs.FILES)
    version = actions.add_version(flights, alice, filename, content)
    assert (version.filename, version.artifact.read_bytes()) == (filename, content)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/cron.py", "cron.py"),
        ("C:\\jobs\\sensors.py", "sensors.py"),
        ("my job (2).py", "my_job_2.py"),
        ("x" * 300 + ".py", "x" * 80 + ".py"),
        ("<img src=x>.py", "img_src_x.py"),
        ("Flüge.py", "Fluge.py"),
        ("日本語.py", "job.py"),
        ("Flüge.zip", "Fluge.zip"),
        ("flights-1.0+a-py3-none-any.whl", "flights-1.0+a-py3-none-any.whl"),
    ],
)
def test_a_file_name_keeps_no_folders_and_no_odd_characters(given, kept):
    assert artifacts.safe_name(given) == kept


def test_settings_change_and_are_audited(flights, alice):
    job = actions.change_settings(flights, alice, {"parallelism": 3})

    entry = AuditEntry.objects.get(action="job.settings")
    assert (job.settings["parallelism"], job.settings["require_state"]) == (3, False)
    assert (entry.before["parallelism"], entry.after["parallelism"]) == (1, 3)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"parallelism": 0}, "parallelism must be a whole number from 1 to 128: got 0"),
        ({"parallelism": 129}, "got 129"),
        ({"parallelism": True}, "got True"),
        ({"parallelism": "2"}, "got '2'"),
        ({"checkpoint_interval_ms": 99}, "from 100 to 86400000: got 99"),
        ({"arguments": "--speed 2"}, "arguments must be a list"),
        ({"arguments": [1]}, "arguments must be a list"),
        ({"arguments": ["a\0b"]}, "too many or too long"),
        ({"arguments": ["x"] * 101}, "too many or too long"),
        ({"colour": "red"}, "settings cannot have colour"),
    ],
)
def test_settings_that_cannot_work_are_refused(values, sentence):
    with pytest.raises(Refused, match=sentence):
        settings_from(values)


def test_arguments_are_split_as_in_a_shell():
    assert split_arguments("--speed 2 --output '/data/my files'") == (
        "--speed",
        "2",
        "--output",
        "/data/my files",
    )
    with pytest.raises(Refused, match="no closing quotation; close every quote"):
        split_arguments("--output '/data")


def test_viewers_and_strangers_create_nothing(flights, team, bob, mallory):
    for person in (bob, mallory):
        with pytest.raises(Refused, match="needs the operator role"):
            actions.create_job("mine", team, person, "flights.py", CODE)
        with pytest.raises(Refused, match="needs the operator role"):
            actions.add_version(flights, person, "flights.py", CODE)
        with pytest.raises(Refused, match="needs the operator role"):
            actions.change_settings(flights, person, {"parallelism": 2})


def test_an_operator_may_do_what_the_owner_may(flights, team, bob):
    Membership.objects.filter(user=bob).update(role=Role.OPERATOR)

    assert actions.add_version(flights, bob, "flights.py", CODE).created_by == bob


def test_a_line_for_a_job_without_a_control_stream_is_refused(running, alice):
    with pytest.raises(Refused, match="flights has no control stream"):
        actions.send_control(running, alice, "pressure 2.5")


def test_a_line_that_cannot_be_delivered_is_refused(running, alice, settings):
    settings.HEADWATER_REDIS_URL = "unix:///nowhere/redis.sock"
    actions.change_settings(running, alice, {"control_port": 9999})
    running.refresh_from_db()

    with pytest.raises(Refused, match="a control line is one line"):
        actions.send_control(running, alice, "pressure 2.5\nSHUTDOWN")
    with pytest.raises(Refused, match="the line was not sent"):
        actions.send_control(running, alice, "pressure 2.5")
