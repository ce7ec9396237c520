"""The transaction of a request, put down while an engine is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from controlplane.access.models import Team
from controlplane.resting import Held, at_rest, whole_request


def write(name: str) -> None:
    Team.objects.create(name=name)


def names() -> set[str]:
    return set(Team.objects.values_list("name", flat=True))


def fail() -> None:
    msg = "killed"
    raise OSError(msg)


def ask(*_: Held) -> None:
    with at_rest():
        pass


def killed(*acts: Callable[[Held], None]) -> Held:
    """A request that does these things and does not come to its end."""
    with pytest.raises(OSError, match="killed"), whole_request() as held:
        run(held, *acts)
    return held


def run(held: Held, *acts: Callable[[Held], None]) -> None:
    for act in acts:
        act(held)
    fail()


def claim(held: Held) -> None:
    write("claim")
    held.may_be_kept()


def effect(_: Held) -> None:
    write("effect")


def ask_inside(held: Held) -> None:
    with transaction.atomic():
        ask(held)


def lose(held: Held) -> None:
    held.back = fail


@pytest.mark.django_db
def test_what_may_be_kept_is_committed_and_the_rest_is_one_whole():
    killed(claim, ask, effect)
    assert names() == {"claim"}


@pytest.mark.django_db
@pytest.mark.parametrize("acts", [(claim, effect, ask), (claim, ask_inside)])
def test_who_has_written_or_is_inside_of_a_transaction_is_not_put_down(acts):
    assert not killed(*acts).was_put_down
    assert names() == set()


@pytest.mark.django_db
def test_who_finds_its_claim_lost_writes_nothing():
    killed(claim, lose, ask, effect)
    assert names() == {"claim"}


@pytest.mark.django_db
def test_outside_of_a_request_it_does_nothing():
    with at_rest():
        write("a")
    assert names() == {"a"}
