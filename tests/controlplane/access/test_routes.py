"""Every address and topic, asked by everybody: `route_table.py` says what they get.

A route that is in no line of the table fails here, and so does one that answers a method without a
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from django.conf import settings
from django.contrib.admindocs.views import simplify_regex
from django.contrib.auth.models import AnonymousUser, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RegexPattern
from django.utils import timezone

from controlplane.access.abilities import ABILITIES
from controlplane.access.logins import issue_login
from controlplane.access.models import Membership, Role
from controlplane.access.tokens import issue_token
from controlplane.alerts.actions import add_route, add_rule
from controlplane.alerts.models import Alert
from controlplane.api.keys import HEADER as KEY_HEADER
from controlplane.api.keys import REPLAYED
from controlplane.backends.fake import PLAN
from controlplane.live.topics import Family, parse
from controlplane.live.visibility import allowed
from controlplane.operations.models import Operation
from controlplane.replay.models import Difference, Replay, ReplayOutput
from controlplane.snapshots.models import Checkpoint, Savepoint, StrayFolder
from controlplane.snapshots.schedule_actions import add_schedule
from dashboard.urls import urlpatterns
from people import JOB_FILE
from route_table import ROUTES, TOPICS, Rule

RANKS = ("everyone", "signed_in", "viewer", "operator", "admin", "platform_admin")
PEOPLE = ("nobody", "mallory", "bob", "olga", "alice", "root")
"""Each is let in by the rule at the same place in RANKS, and by those before it."""


def routes(resolver: URLResolver | None = None, prefix: str = "/") -> Iterator[str]:
    """Every address, as it stands in the urls.py files."""
    for one in (resolver or get_resolver()).url_patterns:
        text = str(one.pattern)
        if isinstance(one.pattern, RegexPattern):
            text = simplify_regex(text).lstrip("/").replace("\\.", ".")
        route = prefix + text
        if isinstance(one, URLPattern):
            yield route
        else:
            yield from routes(one, route)


def methods(route: str) -> tuple[str, ...]:
    """What can be asked there: browsers know two methods, the API all."""
    api = route.startswith("/api/")
    return ("GET", "POST", "PUT", "PATCH", "DELETE") if api else ("GET", "POST")


def expected(line: str, rule: Rule, person: str) -> str:
    """What this person gets."""
    if rule.needs in {"token", "nothing"}:
        return "401" if rule.needs == "token" else "404"
    rank = "admin" if rule.needs == "owner" else rule.needs  # what is owned is alice's
    if PEOPLE.index(person) >= RANKS.index(rank):
        return "in"
    if person == "nobody":
        return "401" if " /api/" in line else "login"
    hidden = rule.needs == "owner" or (person == "mallory" and rule.needs != "platform_admin")
    return "404" if hidden else "403"


def is_telling(rule: Rule, person: str) -> bool:
    """Who is asked: everybody who is not let in, the first who is, and the platform admin.

    Between these two nothing differs: a role includes the ones below it.
    """
    if rule.needs not in RANKS or person == "root":
        return True
    return PEOPLE.index(person) <= max(RANKS.index(rule.needs), PEOPLE.index("mallory"))


def verdict(answer: HttpResponse, rule: Rule) -> str:
    """What the answer is in the words of the table; a 403 must name the role that is needed."""
    role = f"the {rule.needs.replace('_', ' ')} role"
    match answer.status_code:
        case 302 if answer["Location"].startswith("/login/?next="):
            return "login"
        case 403 if role not in answer.content.decode():
            return f"403 that does not say “{role}”"
        case 401 | 403 | 404 | 405 | 500 as status:
            return str(status)
        case _:
            return "in"


@dataclass
class World:
    """People, and one of each thing that addresses and forms name."""

    people: dict[str, User | None]
    values: dict[str, object]
    sessions: dict[str, str] = field(default_factory=dict)

    def ask(self, person: str, line: str, rule: Rule, **options: bool) -> HttpResponse:
        """The answer; what was changed is taken back."""
        self._session(person)
        with transaction.atomic():
            answer = self.send(person, line, rule, **options)
            transaction.set_rollback(True)
        return answer

    def send(
        self,
        person: str,
        line: str,
        rule: Rule,
        headers: dict[str, str] | None = None,
        **options: bool,
    ) -> HttpResponse:
        """The answer."""
        method, route = line.split(" ")
        client = Client(raise_request_exception=False, **options)
        if session := self._session(person):
            client.cookies[settings.SESSION_COOKIE_NAME] = session
        data = {name: self._value(text) for name, text in rule.data.items()}
        is_form = method == "GET" or not route.startswith("/api/v1/") or "file" in data
        shape = {} if is_form else {"content_type": "application/json"}
        return getattr(client, method.lower())(self.address(route), data, headers=headers, **shape)

    def _session(self, person: str) -> str:
        """Everybody signs in once; nobody never does."""
        if self.people[person] is None:
            return ""
        if person not in self.sessions:
            client = Client()
            client.force_login(self.people[person])
            self.sessions[person] = client.cookies[settings.SESSION_COOKIE_NAME].value
        return self.sessions[person]

    def address(self, route: str) -> str:
        """The route with the names of what there is."""
        return re.sub(r"<(?:\w+:)?(\w+)>", self._named, route)

    def _named(self, found: re.Match[str]) -> str:
        hint = f"no value for {found[0]}: add one to the fixture `world` of test_routes.py"
        assert found[1] in self.values, hint
        return str(self.values[found[1]])

    def _value(self, text: str) -> object:
        if text.startswith("@"):
            return SimpleUploadedFile(text[1:], JOB_FILE)
        return text.format(**self.values)


@pytest.fixture
def world(running, team, alice, bob, mallory) -> World:
    olga = User.objects.create_user("olga")
    Membership.objects.create(user=olga, team=team, role=Role.OPERATOR)
    root = User.objects.create_superuser("root")
    version = running.versions.get()
    savepoint = Savepoint.objects.create(
        job=running, version=version, origin="manual", status="completed", location="/nowhere/1"
    )
    stray = StrayFolder.objects.create(
        cluster=running.cluster,
        job=running,
        location="/nowhere/2",
        is_complete=False,
        size_bytes=1,
        changed_at=timezone.now(),
        found_at=timezone.now(),
    )
    checkpoint = Checkpoint.objects.create(
        run=running.runs.get(), engine_checkpoint_id=1, status="failed", trigger_at=timezone.now()
    )
    replay = Replay.objects.create(
        number=7, job=running, savepoint=savepoint, version=version, status="replaying"
    )
    watched = {"measure": "restarts", "threshold": 3, "for_seconds": 0, "severity": "warn"}
    rule = add_rule(team, running, alice, **watched)
    alert = Alert.objects.create(
        rule=rule, job=running, state="firing", since=timezone.now(), seen_at=timezone.now()
    )
    route = add_route(team, alice, kind="email", target="ops@example.org")
    api_token, _ = issue_token(alice, "ci", "read", 30, None, timezone.now())
    return World(
        dict(zip(PEOPLE, (None, mallory, bob, olga, alice, root), strict=True)),
        {
            "name": running.name,
            "job": running.name,
            "job_id": running.pk,
            "team": team.name,
            "user": bob.username,
            "token_id": api_token.pk,
            "savepoint": savepoint.pk,
            "savepoint_id": savepoint.pk,
            "other_id": savepoint.pk,
            "stray_id": stray.pk,
            "schedule_id": add_schedule(running, alice, 5).pk,
            "replay_id": replay.pk,
            "vertex": PLAN["nodes"][0]["id"],
            "replay_name": replay.name,
            "difference": (difference := difference_of(replay).pk),
            "difference_id": difference,
            "operation_id": Operation.objects.get().pk,
            "number": version.number,
            "other": version.number,
            "run": checkpoint.run_id,
            "checkpoint": checkpoint.engine_checkpoint_id,
            "cluster": running.cluster.name,
            "rule_id": rule.pk,
            "alert_id": alert.pk,
            "route_id": route.pk,
            "manager": "tm-1",
            "shape": "csv",
            "rest": "nowhere",
            "token": issue_login(alice, timezone.now()),
        },
    )


def difference_of(replay: Replay) -> Difference:
    output = ReplayOutput.objects.create(replay=replay, uid="daily", name="daily")
    return Difference.objects.create(
        output=output, verdict="only_old", rows=1, first_seen=replay.created_at
    )


def test_every_address_is_in_the_table():
    known = {line.split(" ")[1] for line in ROUTES}
    missing = [
        f'    "GET {route}": viewer(),' for route in dict.fromkeys(routes()) if route not in known
    ]
    assert not missing, (
        "addresses that nobody checks: add a line for each method that they answer to ROUTES in "
        "tests/route_table.py, with who may ask and what a valid form sends:\n" + "\n".join(missing)
    )


def test_the_table_names_no_address_that_is_gone():
    assert {line.split(" ")[1] for line in ROUTES} - set(routes()) == set()


def test_an_address_answers_no_method_that_is_not_in_the_table(world):
    answered = [
        line
        for route in dict.fromkeys(routes())
        for line in (f"{method} {route}" for method in methods(route))
        if line not in ROUTES and world.ask("root", line, Rule("everyone")).status_code != 405
    ]
    assert not answered, (
        "these are answered and nobody checks who may ask: add a line for each to ROUTES in "
        "tests/route_table.py, or decorate the view with require_safe or require_POST:\n    "
        + "\n    ".join(answered)
    )


@pytest.mark.parametrize("person", PEOPLE)
def test_everybody_gets_what_the_table_says(world, person):
    wrong = []
    for line, rule in ROUTES.items():
        if not is_telling(rule, person):
            continue
        want, got = expected(line, rule, person), verdict(world.ask(person, line, rule), rule)
        if want != got:
            wrong.append(f"{line}: {person} should get {want}, and gets {got}")
    assert not wrong, "\n    ".join(["see tests/route_table.py:", *wrong])


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.address)
def test_the_list_of_abilities_says_what_is_so(ability):
    (pattern,) = [one.pattern for one in urlpatterns if one.name == ability.address]
    rules = [ROUTES.get(f"{method} /{pattern}") for method in ("POST", "GET")]
    assert [rule.needs for rule in rules if rule] == [ability.role]


def test_a_page_of_another_site_can_change_nothing(world):
    for line, rule in ROUTES.items():
        if not line.startswith("GET ") and rule.needs not in {"token", "nothing"}:
            answer = world.ask("alice", line, rule, enforce_csrf_checks=True)
            assert answer.status_code == 403, line


def test_the_api_does_nothing_twice_for_the_same_key(world):
    done = 0
    world.ask("root", "GET /jobs/", Rule("signed_in"))  # signs in, outside of what is taken back
    for number, (line, rule) in enumerate(ROUTES.items()):
        if " /api/v1/" not in line or line.startswith("GET ") or rule.needs == "nothing":
            continue
        with transaction.atomic():
            key = {KEY_HEADER: f"key-{number}"}
            first, again = (world.send("root", line, rule, key) for _ in range(2))
            transaction.set_rollback(True)
        kept = REPLAYED in again, (again.status_code, again.content)
        if first.status_code < 300:
            done += 1
            assert kept == (True, (first.status_code, first.content)), line
        else:
            assert not kept[0], f"{line}: nothing was done, so nothing is kept"
    assert done > 30


def test_every_kind_of_topic_is_in_the_table():
    missing = [f"Family.{one.name}" for one in Family if one not in TOPICS]
    assert not missing, f"add a line for each to TOPICS in tests/route_table.py: {missing}"


def test_a_topic_is_heard_by_whom_the_table_says(world):
    for family, (pattern, rule) in TOPICS.items():
        topic = parse(pattern.format(**world.values))
        assert topic is not None, pattern
        assert topic.family is family
        for person, user in world.people.items():
            heard = topic.name in allowed(user or AnonymousUser(), [topic])
            assert heard == (expected("", rule, person) == "in"), (topic.name, person)
