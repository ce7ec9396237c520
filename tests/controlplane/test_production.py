"""The production run: settings from the environment, and a compose file that fits the programs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml
from celery.apps.beat import Beat
from compose_spec import PyCompose
from django.core.management import get_commands

from controlplane.celery import app
from controlplane.configuration import variables
from controlplane.database import database
from controlplane.environment import celery_url, mail

CHECKOUT = Path(__file__).resolve().parents[2]
TEXT = (CHECKOUT / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES = COMPOSE["services"]
OURS = ("migrate", "engine", "web", "worker", "beat", "collector")
ENGINES_OWN = {
    "HEADWATER_METRICS_ORG",
    "HEADWATER_POINTS_TOKEN",
    "HEADWATER_POINTS_URL",
    "REDIS_PASSWORD",
}


def test_an_address_of_postgres_becomes_its_settings():
    found = database("postgresql://me:p%40ss@db:5433/hw?sslmode=verify-full", Path())
    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert (found["NAME"], found["USER"], found["PASSWORD"]) == ("hw", "me", "p@ss")
    assert (found["HOST"], found["PORT"]) == ("db", "5433")
    assert found["OPTIONS"]["sslmode"] == "verify-full"
    assert database("postgres://me@/hw?host=/run/pg", Path())["HOST"] == "/run/pg"


def test_without_an_address_the_database_is_in_the_home(tmp_path):
    assert database("", tmp_path)["NAME"] == tmp_path / "controlplane.sqlite3"
    assert database("sqlite:///data/x.db", tmp_path)["NAME"] == Path("/data/x.db")


@pytest.mark.parametrize("url", ["mysql://me:secret@db/hw", "postgres://me:secret@db/", "x"])
def test_an_address_that_is_none_is_refused_without_its_password(url):
    with pytest.raises(ValueError, match="must be like postgres://") as refused:
        database(url, Path())
    assert "secret" not in str(refused.value)


def test_redis_with_tls_is_told_to_check_certificates():
    assert celery_url("rediss://:s@r:6380/0?x=1").endswith("?x=1&ssl_cert_reqs=required")
    assert celery_url("unix:///run/redis.sock") == "redis+socket:///run/redis.sock"


def test_a_mail_password_never_goes_over_an_open_line():
    assert mail("smtp://me:x@mail")["EMAIL_USE_TLS"]
    assert mail("smtps://mail")["EMAIL_USE_SSL"]
    assert not mail("smtp://mail:25")["EMAIL_USE_TLS"]
    with pytest.raises(ValueError, match="got the scheme 'http'"):
        mail("http://mail")


def test_beat_begins_in_a_home_that_nobody_has_made(tmp_path):
    beat = Beat(app=app, schedule=str(tmp_path / "home" / "run" / "beat"))
    service = beat.Service(app, None, beat.schedule, beat.scheduler_cls)
    assert "resume operations" in service.scheduler.schedule
    service.sync()


def test_the_file_is_one_by_the_specification_of_compose():
    assert set(PyCompose.from_yaml(_filled_in(TEXT)).service_names()) == set(SERVICES)
    wrong = TEXT.replace("condition: service_healthy", "condition: service_well")
    with pytest.raises(ValueError, match="service_well"):
        PyCompose.from_yaml(_filled_in(wrong))


@pytest.mark.parametrize("name", OURS)
def test_each_process_is_a_program_that_there_is(name):
    command = SERVICES[name]["command"]
    if command[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(command[2]) is not None
    elif command[0] == "python":
        assert (CHECKOUT / command[1]).is_file()
        assert command[2] in get_commands()
    else:
        assert command[0] in {"uvicorn", "celery"}


@pytest.mark.parametrize("name", OURS)
def test_each_process_is_told_only_what_the_platform_reads(name):
    known = {variable.name for variable in variables({})} | ENGINES_OWN
    assert set(SERVICES[name]["environment"]) <= known


def test_what_is_waited_for_is_there_and_migrations_run_once():
    for name, service in SERVICES.items():
        for other, wish in service.get("depends_on", {}).items():
            if wish["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], (name, other)
    for name in ("web", "worker", "beat", "collector"):
        waits = SERVICES[name]["depends_on"]["migrate"]
        assert waits["condition"] == "service_completed_successfully"
    assert SERVICES["migrate"]["restart"] == "no"
    assert [name for name in OURS if "bootstrap" in SERVICES[name]["command"]] == ["migrate"]


def test_no_secret_is_in_the_files_and_nothing_listens_to_others():
    wanted = set(re.findall(r"\$\{(\w+):\?", TEXT))
    example = (CHECKOUT / "deploy" / "env.example").read_text()
    assert wanted == set(re.findall(r"^(\w+)=$", example, re.MULTILINE))
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        for name, value in (service.get("environment") or {}).items():
            if re.search("PASSWORD|TOKEN|SECRET", name):
                assert value.startswith("${"), name


def test_every_named_volume_is_declared():
    named = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
        if not volume.startswith(".")
    }
    assert named == set(COMPOSE["volumes"])
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            if volume.startswith("./"):
                assert (CHECKOUT / volume.split(":")[0]).is_dir()


def _filled_in(text: str) -> str:
    """What compose reads: anchors merged, and each variable with its value."""
    return re.sub(r"\$\{\w+[^}]*\}", "x", yaml.safe_dump(yaml.safe_load(text)))
