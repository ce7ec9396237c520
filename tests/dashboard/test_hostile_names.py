"""Texts with markup, right-to-left marks, emoji and no end are texts on every page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.apps import apps
from django.contrib.auth.models import User

from controlplane.metrics.line_protocol import Point, tags_of
from controlplane.metrics.store import OUTPUTS
from hostile import CROOKED, MARKUP, seed
from route_table import ROUTES, Rule

PAGES = {
    line.removeprefix("GET "): rule
    for line, rule in ROUTES.items()
    if line.startswith("GET /") and rule.needs not in {"everyone", "token", "nothing"}
}
SAYS_WHY = {"data-tip", "title", "aria-describedby", "data-armed"}
"""Where a disabled button says what would enable it; `data-armed`: the field above it does, by its
label “Type … to confirm”."""
MODELS = {
    ("job", "name"): ("jobs.Job", "name"),
    ("team",): ("access.Team", "name"),
    ("user",): ("auth.User", "username"),
    ("replay", "replay_id"): ("replay.Replay", "pk"),
    ("savepoint", "savepoint_id", "other_id"): ("snapshots.Savepoint", "pk"),
    ("number", "other"): ("jobs.JobVersion", "number"),
    ("run",): ("snapshots.Checkpoint", "run_id"),
    ("checkpoint",): ("snapshots.Checkpoint", "engine_checkpoint_id"),
    ("cluster",): ("backends.Cluster", "name"),
}


@pytest.fixture
def things(flights, run, checkpoints, savepoint, replay, store):
    """One of everything that pages show."""
    point = Point("flights", tags_of([("origin", MARKUP)]), (("delay", 1.0),), 10**18)
    assert store.write(OUTPUTS, [point]) == []


def named() -> dict[str, object]:
    """What stands for the parts of addresses."""
    values: dict[str, object] = {"shape": "csv", "vertex": "a1", "rest": "nowhere"}
    for names, (model, field) in MODELS.items():
        first = apps.get_model(model)._default_manager.order_by("pk").first()
        values |= dict.fromkeys(names, getattr(first, field))
    for model in apps.get_models():  # <cluster_id>, <schedule_id>, <token_id> and so on
        first = model._default_manager.order_by("pk").first()
        if first is not None:
            words = re.findall("[A-Z][a-z]+", model.__name__)
            for word in ("_".join(words).lower(), words[-1].lower() if words else "x"):
                values.setdefault(f"{word}_id", first.pk)
    return values


class Tags(HTMLParser):
    """The tags of a page, the names of their attributes, and buttons that say nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: list[str] = []
        self.silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        given = dict(attrs)
        self.attributes += given
        disabled = "disabled" in given or given.get("aria-disabled") == "true"
        if tag == "button" and disabled and not given.keys() & SAYS_WHY:
            self.silent.append(str(given))


@pytest.mark.parametrize("text", [MARKUP, CROOKED], ids=["markup", "crooked"])
def test_hostile_texts_are_texts_on_every_page(text, things, as_, alice):
    seed(text)
    root = User.objects.create_superuser("root")
    client, values, faults = as_(root), named(), []
    client.raise_request_exception = False
    for route, rule in PAGES.items():
        answer = client.get(address(route, values), sent(rule, values))
        # 409: the engine has no such folder any more, and says its name.
        if answer.status_code not in {200, 302, 409}:
            faults.append(f"{route} answers {answer.status_code}")
        elif answer["Content-Type"].startswith("text/html"):
            faults += [f"{route} {what}" for what in faults_of(answer.content.decode())]
    assert not faults, "\n".join(faults)


def address(route: str, values: dict[str, object]) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(values[found[1]]), route)


def sent(rule: Rule, values: dict[str, object]) -> dict[str, str]:
    return {name: text.format(**values) for name, text in rule.data.items()}


def faults_of(page: str) -> list[str]:
    """What of the text has become markup."""
    tags = Tags()
    tags.feed(page)
    handlers = [name for name in tags.attributes if name.startswith("on")]
    faults = [f"has the handler {name}" for name in handlers]
    faults += ["has an image of nobody's"] * ("img" in tags.found)
    faults += [f"has a disabled button that does not say why: {one}" for one in tags.silent]
    faults += ["ran a template of somebody's"] * ("&quot;&#x27; 14" in page)
    return faults


def test_what_is_looked_for_would_be_found():
    assert len(faults_of(f"<p title='{MARKUP}'>{MARKUP}</p>")) >= 2
