"""Rows whose every free text is hostile, in every model that there is: also in those to come.

    seed(text)    one row at least per model of the platform, each free text of it replaced

Keys, choices, slugs, addresses and what has a pattern of its own stay as they are: nobody can put
anything else there.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.apps import apps
from django.core.validators import RegexValidator
from django.db import DatabaseError, models, transaction
from django.utils import timezone

MARKUP = "</script></textarea><img src=x onerror=alert(1)><svg onload=alert(2)>\"' {{ 7|add:7 }}"
CROOKED = "\u202e\u2067\u200f" + "ünïcødé 🧨" + "x" * 190
"""Right-to-left marks, an emoji, and a word that no line holds."""

KEYS = {"kind", "scope", "step", "idempotency_key", "lease_token", "checksum", "sealed_token"}
KEYS |= {"secret", "news"}
"""Texts that only programs write and read."""


def seed(text: str) -> None:
    """Put the text everywhere."""
    for model in apps.get_models():
        if model.__module__.startswith("controlplane."):
            if not model._default_manager.exists():
                _create(model)
            for row in model._default_manager.all():
                _poison(row, text)


def _poison(row: models.Model, text: str) -> None:
    """Replace the texts of a row; of one that the database keeps as it is, write another."""
    for field in row._meta.fields:
        if is_free(field):
            before, after = SHAPED.get(f"{row._meta.object_name}.{field.name}", ("", ""))
            room = None if field.max_length is None else field.max_length - len(before + after)
            setattr(row, field.attname, f"{before}{text[:room]}{after}")
        elif isinstance(field, models.JSONField):
            told = JSON.get(f"{row._meta.object_name}.{field.name}")
            value = getattr(row, field.attname)
            setattr(row, field.attname, told(text) if told else _within(value, text))
    try:
        with transaction.atomic():
            row.save()
    except (DatabaseError, TypeError):
        row.pk, row._state.adding = None, True
        row.save()


def is_free(field: models.Field[Any, Any]) -> bool:
    """Whether people, jobs or engines can put any text there."""
    fixed = isinstance(field, models.SlugField | models.URLField | models.UUIDField)
    patterned = any(isinstance(one, RegexValidator) for one in field.validators)
    text = isinstance(field, models.CharField | models.TextField)
    return text and not (fixed or patterned or field.choices or field.unique or field.name in KEYS)


def hostile_state(text: str) -> dict[str, Any]:
    """A state in a savepoint's manifest."""
    sizes = {"rows": 1, "size_bytes": 1}
    return {"name": text, "kind": text, "keys": {text: text}, "values": {text: text}} | sizes


SHAPED = {"Route.target": ("https://example.test/", ""), "JobVersion.filename": ("", ".py")}
"""How a text begins and ends that is checked before it is kept."""

JSON = {
    "Run.plan": lambda text: {
        "nodes": [{"id": "a1", "parallelism": 1, "description": text, "operators": [text]}]
    },
    "Run.dropped": lambda text: [text],
    "RunFailure.echoes": lambda text: [{"name": text, "sentence": text, "task": text, "at_ms": 1}],
    "AuditEntry.before": lambda text: {text: text},
    "AuditEntry.after": lambda text: {text: [text]},
    "Savepoint.source_positions": lambda text: {text: {text: {"position": text, "watermark": 1}}},
    "Savepoint.problems": lambda text: [text],
    "Savepoint.contents": lambda text: {
        "engine_version": text,
        "format_version": 2,
        "operators": [{"uid": text, "name": text, "states": [hostile_state(text)]}],
    },
    "Checkpoint.detail": lambda text: {"reason": text, "type": text},
    "Job.settings": lambda text: {"parallelism": 2, "arguments": [text]},
}
"""What people and engines fill in a form of their own."""


def _within(value: Any, text: str) -> Any:
    """The same value with other texts; `Operation.params` and the like name things by id."""
    if isinstance(value, dict):
        return {name: _within(one, text) for name, one in value.items() if "id" not in name}
    if isinstance(value, list):
        return [_within(one, text) for one in value]
    return text if isinstance(value, str) else value


def _create(model: type[models.Model]) -> models.Model:
    """A row with no more than it must have."""
    needed = [
        field
        for field in model._meta.fields
        if not (field.has_default() or field.null or field.primary_key)
        and not getattr(field, "auto_now_add", False)
        and not getattr(field, "auto_now", False)
    ]
    values = {field.name: _value(field) for field in needed}
    return model._default_manager.create(**values)


KNOWN = {"Operation.kind": "cancel"}
"""Keys that programs look up."""


def _value(field: models.Field[Any, Any]) -> Any:
    if known := KNOWN.get(f"{field.model._meta.object_name}.{field.name}"):
        return known
    if isinstance(field, models.ForeignKey):
        related = field.related_model
        return related._default_manager.first() or _create(related)
    if field.choices:
        return field.choices[0][0]
    match field.get_internal_type():
        case "DateTimeField":
            return timezone.now()
        case "DurationField":
            return timedelta(minutes=5)
        case "CharField" | "TextField" | "SlugField":
            return "a"
        case "BooleanField":
            return True
        case "JSONField":
            return {}
        case _:
            return 1
