"""Teams, who is in them, and the ways to log in: links, tokens, single sign-on."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Role(models.TextChoices):
    """What a member may do; each includes the one before."""

    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Admin"


class Team(models.Model):
    """A group of people that owns jobs."""

    name = models.SlugField(max_length=64, unique=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="teams"
    )

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person's role in one team."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "team"], name="one_role_per_team"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class OneTimeLogin(models.Model):
    """A link that logs one person in, once; only the token's SHA-256 is kept."""

    token_sha256 = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"login of {self.user} until {self.expires_at:%H:%M:%S}"


class ApiToken(models.Model):
    """A key for programs: it acts as its owner, within its scope; only its SHA-256 is kept."""

    class Scope(models.TextChoices):
        """The highest role that it gives, whatever its owner has."""

        READ = "read", "Read"
        OPERATE = "operate", "Operate"
        ADMIN = "admin", "Admin"

    name = models.CharField(max_length=64)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    token_sha256 = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12)
    """How it begins, for people who look for it in their files."""
    scope = models.CharField(max_length=16, choices=Scope.choices, default=Scope.READ)
    team = models.ForeignKey(
        Team, null=True, blank=True, on_delete=models.CASCADE, related_name="api_tokens"
    )
    """The only team that it can see; none: every team of its owner."""
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    """To the minute."""
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"token {self.name} of {self.owner}"


class LoginFailures(models.Model):
    """How often a login failed lately, for one name at one address or for one address."""

    key = models.CharField(max_length=64, unique=True)
    """SHA-256 of name and address, so that the table tells nobody who tried what."""
    failures = models.PositiveIntegerField(default=0)
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.failures} failed logins since {self.since:%H:%M:%S}"


class Identity(models.Model):
    """A person as a provider of single sign-on knows them."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities"
    )
    issuer = models.CharField(max_length=300)
    subject = models.CharField(max_length=255)
    """The provider's id of the person: names and mail addresses change hands, this does not."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_person_per_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"
