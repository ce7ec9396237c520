"""What each role may do, as people read it; the actions check it."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.access.models import Role


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that people do."""

    does: str
    role: Role
    """The lowest that may."""
    address: str
    """A page's address, by name, where it is done: a test asks it with each role."""

    @property
    def by(self) -> tuple[bool, bool, bool]:
        """Whether a viewer, an operator and an admin may."""
        viewer, operator = self.role == Role.VIEWER, self.role != Role.ADMIN
        return viewer, operator, True


ABILITIES = (
    Ability("See jobs, checkpoints, savepoints, outputs and replays", Role.VIEWER, "job"),
    Ability("Deploy a new job", Role.OPERATOR, "deploy"),
    Ability("Start a job, or upgrade it to another version", Role.OPERATOR, "start"),
    Ability("Stop, drain or cancel a job", Role.OPERATOR, "stop"),
    Ability("Upload a version: it runs as code on the engine", Role.OPERATOR, "upload"),
    Ability("Take and import savepoints", Role.OPERATOR, "take"),
    Ability("Change savepoint schedules", Role.OPERATOR, "add_schedule"),
    Ability("Start and abandon replays", Role.OPERATOR, "abandon"),
    Ability("Send a line to a job's control stream", Role.OPERATOR, "control"),
    Ability("Give a job to another team, of which you are admin too", Role.ADMIN, "job_team"),
    Ability("Add and remove people, change their roles", Role.ADMIN, "set_role"),
)
