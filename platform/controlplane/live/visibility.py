"""Who may hear of what: the same answers as the pages give, by the same functions of `access`.

Needs    the database; call it through `database_sync_to_async`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import AnonymousUser, User

from controlplane.access.errors import Refused
from controlplane.access.lookup import job_by_id, operation_for, replay_for, visible_jobs
from controlplane.live.topics import Family, Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    Person = User | AnonymousUser


def fleet_of(user: Person) -> frozenset[str]:
    """Ids of the jobs that this person may see."""
    return frozenset(str(pk) for pk in visible_jobs(user).values_list("pk", flat=True))


def allowed(user: Person, topics: Iterable[Topic]) -> set[str]:
    """Names of those topics that this person may hear."""
    return {topic.name for topic in topics if _may_hear(user, topic)}


def signed_in(user_id: int, session_key: str | None) -> User | None:
    """The person, as the database knows them now; None once they are signed out or shut out."""
    user = get_user_model().objects.filter(pk=user_id, is_active=True).first()
    if session_key is not None:
        store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
        if str(store.get(SESSION_KEY)) != str(user_id):
            return None
    return user if isinstance(user, User) else None


def _may_hear(user: Person, topic: Topic) -> bool:
    lookup: Callable[[], object]
    match topic.family:
        case Family.FLEET | Family.ALERTS:
            return user.is_authenticated
        case Family.OPERATION:
            lookup = lambda: operation_for(user, topic.ident)  # noqa: E731
        case Family.REPLAY:
            lookup = lambda: replay_for(user, int(topic.ident))  # noqa: E731
        case _:
            lookup = lambda: job_by_id(user, int(topic.ident))  # noqa: E731
    try:
        lookup()
    except Refused:
        return False
    return True
