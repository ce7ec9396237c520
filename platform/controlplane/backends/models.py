"""Clusters: engines that jobs run on."""

from __future__ import annotations

from django.db import models


class PresentClusters(models.Manager["Cluster"]):
    """Those that were not taken out."""

    def get_queryset(self) -> models.QuerySet[Cluster]:
        """Without those of the past."""
        return super().get_queryset().filter(removed_at=None)


class Cluster(models.Model):
    """One engine, reached through its REST address."""

    class Kind(models.TextChoices):
        """Which engine answers there."""

        HEADWATER = "headwater", "Headwater"
        FLINK = "flink", "Apache Flink"

    class Status(models.TextChoices):
        """Whether it answered the last time it was asked."""

        UNKNOWN = "unknown", "Not asked yet"
        OK = "ok", "Answers"
        AWAY = "away", "Does not answer"

    name = models.SlugField(max_length=64, unique=True)
    url = models.URLField(max_length=300)
    sealed_token = models.TextField(blank=True)
    """The token that its engine wants, sealed by `tokens.py`; never shown to anybody."""
    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.HEADWATER)
    version = models.CharField(max_length=64, blank=True)
    capabilities = models.JSONField(default=dict, blank=True)
    """What the engine says it can do beyond Flink's routes."""
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.UNKNOWN)
    last_seen = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    """When it was taken out; kept because runs of the past refer to it."""

    objects = models.Manager()
    present = PresentClusters()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
