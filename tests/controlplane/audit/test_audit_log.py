"""The audit log: nothing in it changes, no secret is in it, and everybody reads their part."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.utils import timezone

from controlplane.access.grants import Grant, limit
from controlplane.access.models import Role, Team
from controlplane.audit.models import AuditEntry
from controlplane.audit.queries import AuditFilter, audit_entries, audit_page
from controlplane.audit.record import record
from controlplane.audit.redact import redacted
from controlplane.jobs import actions


@pytest.fixture
def root(db):
    return User.objects.create_superuser("root")


def actions_of(user, **wanted):
    return [entry.action for entry in audit_entries(user, AuditFilter(**wanted))]


@pytest.mark.parametrize("change", ["update", "delete"])
def test_the_database_refuses_to_change_the_log(flights, change):
    entries = AuditEntry.objects.filter(job=flights)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        entries.update(reason="another") if change == "update" else entries.delete()
    assert entries.get().reason == ""


def test_no_secret_is_written_down(alice, flights):
    actions.change_settings(
        flights, alice, {"arguments": ["--password", "hunter2", "--to", "kafka://u:hunter2@h/x"]}
    )
    record(
        alice,
        "x",
        "y",
        reason="token: hunter2",
        after={"api_key": "hunter2", "deep": [{"secret": "hunter2"}]},
    )

    kept = str(list(AuditEntry.objects.values()))
    assert "hunter2" not in kept
    assert "kafka://u:•••@h/x" in kept


@pytest.mark.parametrize(
    "harmless",
    [
        {"parallelism": 2, "name": "tokens of gratitude"},
        ["--rate", "5"],
        {"token": ""},
        "the password was changed by an admin",
    ],
)
def test_what_is_no_secret_stays(harmless):
    assert redacted(harmless) == harmless


def test_everybody_reads_their_part(flights, team, alice, bob, mallory, root):
    record(alice, "member.role", "bob", team=team)
    record(mallory, "token.issue", "token of mallory")

    assert actions_of(bob) == ["member.role", "job.create"]
    assert actions_of(mallory) == ["token.issue"]
    assert set(actions_of(root)) == {"member.role", "job.create", "token.issue"}
    other = Team.objects.create(name="other")
    assert actions_of(limit(alice, Grant(Role.ADMIN, other.pk, "ci"))) == []


def test_filters(flights, alice, bob, root):
    actions.add_version(flights, alice, "flights.py", b"import engine\n")
    record(None, "retention.delete", "savepoint 7", job=flights, reason="older than 7 days")

    assert actions_of(alice, job="flights", action="version") == ["version.add"]
    assert actions_of(alice, action="vers") == []
    assert actions_of(alice, actor="platform") == ["retention.delete"]
    assert actions_of(alice, text="OLDER than") == ["retention.delete"]
    assert actions_of(alice, actor="bob") == []
    now = timezone.now()
    assert actions_of(alice, since=now + timedelta(hours=1)) == []
    assert len(actions_of(alice, since=now - timedelta(hours=1), until=now)) == 3


def test_pages_hold_each_entry_once(root):
    for number in range(5):
        record(root, "x", str(number))
    first = audit_page(root, AuditFilter(), limit=2)
    second = audit_page(root, AuditFilter(), first.next, limit=2)
    record(root, "x", "written meanwhile")
    third = audit_page(root, AuditFilter(), second.next, limit=2)

    told = [entry.target for page in (first, second, third) for entry in page.entries]
    assert told == ["4", "3", "2", "1", "0"]
    assert third.next is None


def test_a_page_takes_one_query(flights, root, django_assert_num_queries):
    for number in range(30):
        record(root, "x", str(number), job=flights)
    with django_assert_num_queries(1):
        [
            str(entry) + entry.job.name
            for entry in audit_page(root, AuditFilter()).entries
            if entry.job
        ]
