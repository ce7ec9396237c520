"""What a fresh platform needs before anybody can log in: a person, a team and an engine.

Guarantee   may run at every start: what is there stays, only the engine's address follows.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.models import Membership, Role, Team
from controlplane.backends.models import Cluster

ADMIN = "admin"
TEAM = "demo"
CLUSTER = "embedded"


@transaction.atomic
def bootstrap(engine_url: str) -> tuple[User, Team, Cluster]:
    """The first admin (who logs in by a one-time link), a team, and the engine of this machine."""
    admin, created = User.objects.get_or_create(
        username=ADMIN, defaults={"is_superuser": True, "first_name": "Admin"}
    )
    if created:
        admin.set_unusable_password()
        admin.save(update_fields=["password"])
    team, _ = Team.objects.get_or_create(name=TEAM)
    Membership.objects.get_or_create(user=admin, team=team, defaults={"role": Role.ADMIN})
    cluster, _ = Cluster.objects.update_or_create(
        name=CLUSTER, defaults={"url": engine_url, "kind": Cluster.Kind.HEADWATER}
    )
    return admin, team, cluster
