"""A fresh platform: its first person, engine and jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from controlplane.access.lookup import job_for
from controlplane.access.models import Team
from controlplane.backends.models import Cluster
from controlplane.jobs.bootstrap import bootstrap
from controlplane.jobs.demo import demo_jobs, deploy_demo
from controlplane.jobs.models import Job
from controlplane.operations.models import Operation

EXAMPLES = Path(__file__).parents[3] / "examples"
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def test_a_fresh_platform_has_an_admin_who_has_no_password(db):
    admin, team, cluster = bootstrap("http://127.0.0.1:8081")

    assert admin.is_superuser
    assert not admin.has_usable_password()
    assert list(team.members.all()) == [admin]
    assert cluster.url == "http://127.0.0.1:8081"


def test_again_it_changes_only_the_engines_address(db):
    bootstrap("http://127.0.0.1:8081")
    bootstrap("http://127.0.0.1:8083")

    assert (User.objects.count(), Team.objects.count()) == (1, 1)
    assert Cluster.objects.get().url == "http://127.0.0.1:8083"


def test_the_demo_jobs_are_deployed_once(db, engine, tmp_path):
    admin, team, _ = bootstrap("fake://lab")
    jobs = demo_jobs(EXAMPLES, tmp_path, NOW, control_port=9_999, flights_speed=86_400)

    assert deploy_demo(jobs, team, admin) == ["flights", "sensors"]
    assert deploy_demo(jobs, team, admin) == []
    assert Operation.objects.filter(kind="deploy").count() == 2
    assert job_for(admin, "sensors").settings["control_port"] == 9_999


def test_every_later_run_of_a_demo_job_sees_the_same_stream(db, engine, tmp_path):
    admin, team, _ = bootstrap("fake://lab")
    deploy_demo(demo_jobs(EXAMPLES, tmp_path, NOW, 0, 86_400), team, admin)

    for job in Job.objects.all():
        arguments = job.settings["arguments"]
        assert arguments[arguments.index("--anchor") + 1] == "2026-11-01T12:00:00+00:00"


def test_examples_that_are_not_there_are_left_out(tmp_path):
    assert demo_jobs(tmp_path, tmp_path, NOW, 0, 86_400) == []


def test_the_command_prints_a_link_that_logs_in_once(db, client, capsys):
    bootstrap("fake://lab")
    call_command("one_time_login")
    path = capsys.readouterr().out.strip()

    assert client.get(path).url == "/jobs/"
    assert client.get("/jobs/").wsgi_request.user.username == "admin"
    client.logout()
    assert client.get(path).status_code == 403
    assert not client.get("/jobs/").wsgi_request.user.is_authenticated


def test_there_is_no_link_for_nobody(db):
    with pytest.raises(CommandError, match="there is no active user carol"):
        call_command("one_time_login", "carol")
