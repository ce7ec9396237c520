"""API tokens: what they open, and what they never open."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.access.lookup import (
    is_platform_admin,
    job_for,
    require,
    roles_of,
    team_for,
    visible_jobs,
)
from controlplane.access.models import ApiToken, Membership, Role, Team
from controlplane.access.tokens import MAX_DAYS, issue_token, redeem_token, revoke_token
from controlplane.audit.models import AuditEntry

NOW = timezone.now()
DAY = timedelta(days=1)


def issue(owner, scope="operate", days=30, team=None, name="ci"):
    return issue_token(owner, name, scope, days, team, NOW)


def test_a_token_acts_as_its_owner_within_its_scope(flights, alice):
    for scope, highest in (
        ("read", Role.VIEWER),
        ("operate", Role.OPERATOR),
        ("admin", Role.ADMIN),
    ):
        user = redeem_token(issue(alice, scope)[1], NOW)
        assert user == alice
        require(user, job_for(user, "flights"), highest)
        assert roles_of(user) == {"payments": highest}


def test_above_its_scope_the_refusal_names_the_token(flights, alice):
    user = redeem_token(issue(alice, "read")[1], NOW)
    with pytest.raises(Refused, match=r"needs the operator role .* token ci gives viewer"):
        require(user, flights, Role.OPERATOR)


def test_a_scope_gives_nothing_that_its_owner_has_not(flights, bob):
    user = redeem_token(issue(bob, "admin")[1], NOW)
    with pytest.raises(Refused):
        require(user, flights, Role.OPERATOR)


def test_for_one_team_the_others_are_not_there(flights, alice, lab):
    other = Team.objects.create(name="other")
    Membership.objects.create(user=alice, team=other, role=Role.ADMIN)
    user = redeem_token(issue(alice, "admin", team=other)[1], NOW)

    assert not visible_jobs(user).exists()
    assert roles_of(user) == {"other": Role.ADMIN}
    with pytest.raises(Refused) as refused:
        team_for(user, "payments")
    assert refused.value.status == 404


def test_only_a_whole_token_of_a_platform_admin_is_one(db, team):
    root = User.objects.create_superuser("root")
    assert is_platform_admin(redeem_token(issue(root, "admin")[1], NOW))
    assert not is_platform_admin(redeem_token(issue(root, "operate")[1], NOW))
    assert not is_platform_admin(redeem_token(issue(root, "admin", team=team)[1], NOW))


@pytest.mark.parametrize(("at", "works"), [(DAY - timedelta(seconds=1), True), (DAY, False)])
def test_a_token_ends_at_its_time(alice, at, works):
    text = issue(alice, days=1)[1]
    if works:
        assert redeem_token(text, NOW + at) == alice
    else:
        with pytest.raises(Refused, match="ci expired on"):
            redeem_token(text, NOW + at)


def test_a_revoked_token_opens_nothing(alice):
    token, text = issue(alice)
    revoke_token(token, alice, NOW)
    with pytest.raises(Refused, match="was revoked"):
        redeem_token(text, NOW)
    with pytest.raises(Refused, match="revoked already"):
        revoke_token(token, alice, NOW)


def test_who_is_locked_out_has_no_token_either(alice):
    text = issue(alice)[1]
    User.objects.filter(pk=alice.pk).update(is_active=False)
    with pytest.raises(Refused) as refused:
        redeem_token(text, NOW)
    assert refused.value.status == 401


def test_the_text_of_a_token_is_nowhere(alice):
    text = issue(alice)[1]
    kept = [*ApiToken.objects.values(), *AuditEntry.objects.values()]
    assert text not in str(kept)
    assert ApiToken.objects.get().hint == text[:8]


def test_the_last_use_is_kept_to_the_minute(alice, django_assert_num_queries):
    text = issue(alice)[1]
    redeem_token(text, NOW)
    redeem_token(text, NOW + timedelta(seconds=59))
    assert ApiToken.objects.get().last_used_at == NOW
    redeem_token(text, NOW + timedelta(seconds=60))
    assert ApiToken.objects.get().last_used_at == NOW + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": " "}, "needs a name"),
        ({"scope": "root"}, "scope must be one of read, operate, admin: got 'root'"),
        ({"days": 0}, "lasts 1 to"),
        ({"days": MAX_DAYS + 1}, "lasts 1 to"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(alice, wrong, says):
    with pytest.raises(Refused, match=says):
        issue(alice, **wrong)


def test_a_token_cannot_make_a_stronger_one(alice, team):
    user = redeem_token(issue(alice, "operate", team=team)[1], NOW)
    issue(user, "read", team=team)
    for scope, only in (("admin", team), ("read", None)):
        with pytest.raises(Refused, match="cannot issue one that may do more"):
            issue(user, scope, team=only)
