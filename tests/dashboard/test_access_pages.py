"""Pages about teams, users, tokens and the audit log."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.contrib.auth.models import User

from controlplane.access.models import ApiToken, Membership, Role, Team
from controlplane.access.tokens import redeem_token
from controlplane.audit.models import AuditEntry
from controlplane.audit.record import record
from dashboard.access_forms import AuditForm

PAGES = {
    "/teams/": 8,
    "/teams/payments/": 7,
    "/users/": 8,
    "/tokens/": 7,
    "/audit/": 6,
}
EVIL = "<img src=x onerror=alert(1)></script>"


@pytest.fixture
def root(team):
    user = User.objects.create_superuser("root")
    Membership.objects.create(user=user, team=team, role=Role.VIEWER)
    return user


def text(response):
    return response.content.decode()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_takes_as_many_queries_however_much_there_is(
    path, as_, root, alice, bob, flights, django_assert_num_queries
):
    client = as_(root)
    for number in range(3):
        with django_assert_num_queries(PAGES[path]):
            assert client.get(path).status_code == 200
        person = User.objects.create_user(f"p{number}")
        Membership.objects.create(
            user=person, team=Team.objects.create(name=f"t{number}"), role="viewer"
        )
        Membership.objects.create(user=person, team=flights.team, role="viewer")
        client.post("/tokens/issue/", {"name": "ci", "scope": "read", "days": "3"})


def test_an_admin_changes_a_role_and_is_told_what_it_means(as_, alice, bob):
    client = as_(alice)
    wish = {"user": "bob", "role": "operator"}
    assert client.post("/teams/payments/members/", wish).status_code == 302

    page = text(client.get("/teams/payments/"))
    assert "bob is operator of payments now: gains what an operator may do" in page
    answer = client.post("/teams/payments/members/bob/remove/", headers={"HX-Request": "true"})
    assert answer["HX-Redirect"] == "/teams/payments/"
    assert "bob is not in payments any more" in text(client.get("/teams/payments/"))


def test_a_refusal_stands_beside_the_form(as_, alice):
    answer = as_(alice).post(
        "/teams/payments/members/alice/remove/", headers={"HX-Request": "true"}
    )
    assert answer.status_code == 409
    assert "last admin of team payments" in text(answer)


def test_who_may_not_manage_sees_no_forms(as_, bob):
    page = text(as_(bob).get("/teams/payments/"))
    assert "An admin of this team can add and remove people" in page
    assert "set_role" not in page
    assert 'name="user"' not in page


def test_a_token_is_shown_once(as_, alice):
    client = as_(alice)
    wish = {"name": "ci", "scope": "operate", "team": "payments", "days": "30"}
    answer = client.post("/tokens/issue/", wish)

    (secret,) = set(re.findall(r"hw_[\w-]{20,}", text(answer)))
    assert "no-store" in answer["Cache-Control"]
    token = ApiToken.objects.get()
    assert redeem_token(secret, token.created_at) == alice
    assert secret not in text(client.get("/tokens/"))


def test_a_token_is_revoked_by_its_typed_name(as_, alice):
    client = as_(alice)
    client.post("/tokens/issue/", {"name": "ci", "scope": "read", "days": "30"})
    address = f"/tokens/{ApiToken.objects.get().pk}/revoke/"

    assert client.post(address, {"typed": "cd"}).status_code == 400
    assert client.post(address, {"typed": "ci"}).status_code == 302
    assert "revoked" in text(client.get("/tokens/"))


def test_a_login_link_is_shown_once_and_works(as_, client, root, alice):
    page = text(as_(root).post("/users/alice/login/"))
    (address,) = re.findall(r"http://testserver(/login/once/[\w-]+/)", page)
    assert client.get(address).url == "/jobs/"
    assert client.get("/jobs/").status_code == 200


def test_the_audit_page_shows_what_changed(as_, alice, flights):
    record(
        alice,
        "job.settings",
        "flights",
        job=flights,
        reason="too slow",
        before={"parallelism": 1},
        after={"parallelism": 4},
    )
    page = text(as_(alice).get("/audit/?action=job.settings"))

    assert "too slow" in page
    assert "<del>1</del> → <ins>4</ins>" in page
    assert "<code>job.create</code>" not in page


def test_the_audit_page_goes_on_where_it_ended(as_, alice, flights):
    for number in range(60):
        record(alice, "note.add", f"note {number}", job=flights)
    client = as_(alice)
    first = text(client.get("/audit/?actor=alice"))
    (older,) = re.findall(r'href="(\?actor=alice&amp;before=\d+)"', first)
    second = text(client.get("/audit/" + older.replace("&amp;", "&")))

    assert first.count('<tr class="r">') == 50
    assert second.count('<tr class="r">') == 11


def test_the_download_holds_what_is_filtered(as_, alice, flights):
    record(alice, "note.add", "note", job=flights)
    answer = as_(alice).get("/audit/download.csv?action=note")

    assert answer["Content-Disposition"] == 'attachment; filename="audit.csv"'
    lines = answer.getvalue().decode().splitlines()
    assert [line.split(",")[2] for line in lines] == ["action", "note.add"]


def test_a_spreadsheet_takes_no_cell_of_the_download_for_a_formula(as_, root):
    record(root, "x", "=HYPERLINK(1)", reason='two\nlines, "quoted"', after={"a": 1})
    answer = as_(root).get("/audit/download.csv?action=x").getvalue().decode()
    (row,) = csv.DictReader(io.StringIO(answer))

    assert row["target"] == "'=HYPERLINK(1)"
    assert row["reason"] == 'two\nlines, "quoted"'
    assert row["after"] == '{"a": 1}'
    assert row["actor"] == "root"


@pytest.mark.parametrize("query", ["since=yesterday", "before=0", "before=x"])
def test_a_filter_that_makes_no_sense_is_refused(as_, alice, query):
    assert as_(alice).get(f"/audit/?{query}").status_code == 400


def test_times_in_the_filter_are_utc(settings):
    form = AuditForm({"since": "2026-01-31 14:00"})
    assert form.is_valid()
    assert form.cleaned_data["since"].isoformat() == "2026-01-31T14:00:00+00:00"


def test_text_of_people_is_text(as_, root, flights):
    record(root, "x", EVIL, reason=EVIL, job=flights, before={EVIL: EVIL}, after={EVIL: "b"})
    client = as_(root)
    client.post("/tokens/issue/", {"name": EVIL, "scope": "read", "days": "30"})
    for path in PAGES:
        page = text(client.get(path))
        assert "<img" not in page
        assert " style=" not in page
        assert " onclick=" not in page
    assert AuditEntry.objects.filter(action="token.issue").exists()


def test_the_reference_names_every_call(as_, alice, client):
    page = text(as_(alice).get("/docs/api/"))
    told = client.get("/api/v1/openapi.json").json()["paths"]

    assert page.count('class="call" id="') > sum(len(methods) for methods in told.values()) > 25
    assert all(f"<code>{path}</code>" in page for path in told)
    assert "Idempotency-Key" in page
