"""Has the database refuse to change or delete entries of the audit log.

    protect(connection)     triggers on SQLite and Postgres; other databases have only the model
    unprotect(connection)   for a migration that must touch old rows, and to empty tables

A role that owns the table can drop a trigger: this guards against programs and mistakes, and an
operator who wants more gives the platform a role without that right.
"""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "audit_auditentry"
REFUSAL = "the audit log is append-only"

_PROTECT = {
    "sqlite": [
        f"CREATE TRIGGER audit_no_{event.lower()} BEFORE {event} ON {TABLE} "
        f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        for event in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'restrict_violation'; END $$",
        f"CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON {TABLE} "
        "FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    ],
}
_UNPROTECT = {
    "sqlite": [
        "DROP TRIGGER IF EXISTS audit_no_update",
        "DROP TRIGGER IF EXISTS audit_no_delete",
    ],
    "postgresql": [f"DROP TRIGGER IF EXISTS audit_no_change ON {TABLE}"],
}


def protect(connection: BaseDatabaseWrapper) -> None:
    """From now on only INSERT works."""
    _run(connection, _PROTECT)


def unprotect(connection: BaseDatabaseWrapper) -> None:
    """Let rows be changed again."""
    _run(connection, _UNPROTECT)


def _run(connection: BaseDatabaseWrapper, statements: dict[str, list[str]]) -> None:
    with connection.cursor() as cursor:
        for statement in statements.get(connection.vendor, []):
            cursor.execute(statement)
