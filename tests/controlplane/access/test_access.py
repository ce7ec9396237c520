"""Who may see and do what; one-time logins; what every response carries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from controlplane.access import middleware
from controlplane.access.errors import Refused
from controlplane.access.logins import issue_login, redeem_login
from controlplane.access.lookup import (
    job_by_id,
    job_for,
    operation_for,
    replay_for,
    require,
    savepoint_for,
    schedule_for,
    team_for,
    visible_jobs,
)
from controlplane.access.models import OneTimeLogin, Role
from controlplane.audit.models import AuditEntry
from controlplane.jobs import actions
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Savepoint
from controlplane.snapshots.schedule_actions import add_schedule


@pytest.fixture
def belongings(flights, alice):
    """One of each thing that a job has, with the function that finds it."""
    savepoint = Savepoint.objects.create(job=flights, origin="manual")
    version = flights.versions.get()
    replay = Replay.objects.create(number=1, job=flights, savepoint=savepoint, version=version)
    return [
        (job_for, flights.name),
        (job_by_id, flights.pk),
        (savepoint_for, savepoint.pk),
        (schedule_for, add_schedule(flights, alice, 5).pk),
        (replay_for, replay.pk),
        (operation_for, actions.deploy(flights, alice).pk),
        (team_for, flights.team.name),
    ]


def test_team_mates_see_what_belongs_to_the_team(belongings, alice, bob):
    for find, key in belongings:
        assert find(alice, key) == find(bob, key)


def test_a_stranger_cannot_tell_not_yours_from_not_there(belongings, mallory):
    for person in (mallory, AnonymousUser()):
        for find, key in belongings:
            if find is team_for and not person.is_authenticated:
                continue
            with pytest.raises(Refused) as refused:
                find(person, key)
            assert (refused.value.status, refused.value.code) == (404, "not_found")


def test_a_superuser_sees_and_does_everything(flights, db):
    root = User.objects.create_superuser("root")

    assert list(visible_jobs(root)) == [flights]
    require(root, flights, Role.ADMIN)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_a_viewer_is_told_which_role_is_missing(flights, bob, role):
    require(bob, flights, Role.VIEWER)
    with pytest.raises(Refused, match=f"needs the {role} role in team payments: you have viewer"):
        require(bob, flights, role)


def test_no_identifier_breaks_the_search_for_an_operation(alice):
    with pytest.raises(Refused) as refused:
        operation_for(alice, "../etc/passwd")
    assert refused.value.status == 404


def test_a_login_link_works_once(alice):
    token = issue_login(alice, timezone.now())

    assert redeem_login(token, timezone.now()) == alice
    assert AuditEntry.objects.get().action == "login.once"
    with pytest.raises(Refused, match="used already or has expired"):
        redeem_login(token, timezone.now())


@pytest.mark.parametrize(("minutes", "works"), [(14.9, True), (15, False)])
def test_a_login_link_lasts_a_quarter_of_an_hour(alice, minutes, works):
    now = timezone.now()
    token = issue_login(alice, now)
    later = now + timedelta(minutes=minutes)

    if works:
        assert redeem_login(token, later) == alice
    else:
        with pytest.raises(Refused):
            redeem_login(token, later)


def test_a_locked_out_person_cannot_use_a_link(alice):
    token = issue_login(alice, timezone.now())
    alice.is_active = False
    alice.save()

    with pytest.raises(Refused):
        redeem_login(token, timezone.now())


def test_the_token_itself_is_not_kept(alice):
    token = issue_login(alice, timezone.now())

    assert token not in str(OneTimeLogin.objects.values().get())


def test_the_audit_log_cannot_be_changed(flights):
    entry = AuditEntry.objects.filter(job=flights).first()

    for change in (entry.save, entry.delete):
        with pytest.raises(TypeError, match="append-only"):
            change()


def test_pages_may_run_only_scripts_with_their_nonce():
    seen = {}

    def view(request):
        seen.update(middleware.csp_nonce(request))
        return HttpResponse()

    response = middleware.ContentSecurityPolicyMiddleware(view)(RequestFactory().get("/"))
    policy = response["Content-Security-Policy"]
    assert f"script-src 'self' 'nonce-{seen['csp_nonce']}'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_an_audit_entry_carries_the_id_of_its_request(alice, team, lab):
    def view(request):
        actions.create_job("audited", team, alice, "job.py", b"import engine\n")
        return HttpResponse()

    response = middleware.RequestIdMiddleware(view)(RequestFactory().get("/"))
    assert AuditEntry.objects.get().request_id == response["X-Request-Id"]


def test_a_refusal_is_json_where_that_is_asked_for(rf):
    request = rf.get("/", headers={"accept": "application/json"})
    refused = Refused(409, "busy", "flights is busy", {"operation": "x"})

    answer = middleware.RefusedMiddleware(lambda _: HttpResponse()).process_exception(
        request, refused
    )
    assert answer.status_code == 409
    assert b'"error": "flights is busy"' in answer.content


def test_other_errors_are_left_to_django(rf):
    answer = middleware.RefusedMiddleware(lambda _: HttpResponse()).process_exception(
        rf.get("/"), ValueError("x")
    )
    assert answer is None
