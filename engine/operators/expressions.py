"""Polars expressions in a job: checked when the graph is built, explained when they fail.

Shapes   an expression sees the stream's columns and `event_time`; the other reserved columns are
         kept out of its sight and put back.
Errors   GraphError for an unknown column, a wrong type, a result that looks across rows (it would
         depend on the size of batches); FunctionError when values break an expression at run time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, RESERVED_COLUMNS, ROW_WATERMARK
from engine.errors import FunctionError, GraphError
from engine.frames import without

Schema = Mapping[str, pl.DataType]

HIDDEN_COLUMNS = (ROW_WATERMARK, KEY_GROUP)
"""Reserved columns that authors never see."""


_DRAWS = re.compile(r"\.(sample_n|sample_frac|shuffle)\(")
"""How Polars writes what draws lots."""


def infer(schema: Schema, expressions: Sequence[pl.Expr], step: str) -> dict[str, pl.DataType]:
    """Names and types of what expressions give on a stream of this schema. Raises GraphError."""
    empty = pl.DataFrame(schema=dict(schema))
    try:
        outcome = empty.select(*expressions)
        for expression in expressions:
            _check_row_wise(empty, expression, step)
    except pl.exceptions.ColumnNotFoundError as error:
        raise GraphError(_unknown_column(error, schema, step)) from error
    except pl.exceptions.PolarsError as error:
        msg = f"{step} does not fit the stream's columns: {_first_line(error)}; {_has(schema)}"
        raise GraphError(msg) from error
    _check_reserved(expressions, outcome, empty, step)
    return dict(outcome.schema)


def check_columns(schema: Schema, names: Sequence[str], step: str) -> None:
    """Refuse names that the stream does not have. Raises GraphError."""
    for name in names:
        if not isinstance(name, str):
            msg = f"{step} needs names of columns: got {name!r}; {_has(schema)}"
            raise GraphError(msg)
        if name not in schema:
            msg = f"{step} names an unknown column: got {name!r}; {_has(schema)}"
            raise GraphError(msg)


def evaluate(
    frame: pl.DataFrame, apply: Callable[[pl.DataFrame], pl.DataFrame], step: str
) -> pl.DataFrame:
    """Run expressions that keep the number of rows, out of sight of the hidden columns."""
    hidden = [frame.get_column(name) for name in HIDDEN_COLUMNS if name in frame.columns]
    outcome = evaluate_rows(without(frame, HIDDEN_COLUMNS), apply, step)
    return outcome.hstack(hidden) if hidden else outcome


def values(frame: pl.DataFrame, expression: pl.Expr, step: str) -> pl.Series:
    """One value per row, computed out of sight of the hidden columns. Raises FunctionError."""
    visible = without(frame, HIDDEN_COLUMNS)
    named = expression.alias("value")
    made = evaluate_rows(visible, lambda rows: rows.with_columns(named), step)
    return made.get_column("value")


def evaluate_rows(
    frame: pl.DataFrame, apply: Callable[[pl.DataFrame], pl.DataFrame], step: str
) -> pl.DataFrame:
    """Run a step of Polars on whole rows; what breaks it shows the first one."""
    try:
        return apply(frame)
    except pl.exceptions.PolarsError as error:
        msg = f"{step} failed: {_first_line(error)}: first row of the batch {short_row(frame)}"
        raise FunctionError(msg) from error


def short_row(frame: pl.DataFrame) -> str:
    """The first row of a frame, shortened for a message."""
    return shortened(frame.row(0, named=True)) if frame.height else "none"


def shortened(value: object, length: int = 200) -> str:
    """A value as text of a bounded length."""
    text = repr(value)
    return text if len(text) <= length else text[: length - 1] + "…"


def raised(error: BaseException, length: int = 400) -> str:
    r"""What user code raised, in one line of a bounded length.

    >>> raised(ValueError("not a number:\n  x"))
    'raised ValueError: not a number: x'
    """
    text = " ".join(f"raised {type(error).__name__}: {error}".split())
    return text if len(text) <= length else text[: length - 1] + "…"


def user_columns(schema: Schema) -> list[str]:
    """The columns that are not reserved."""
    return [name for name in schema if name not in RESERVED_COLUMNS]


def _check_row_wise(empty: pl.DataFrame, expression: pl.Expr, step: str) -> None:
    if not _is_row_wise(empty, expression):
        given = shortened(str(expression))
        # Without a format Polars guesses one, from the first values of the batch.
        guesses = "strptime" in given
        remedy = "pass a format" if guesses else "use key_by(…).window(…).agg(…) instead"
        msg = (
            f"{step} looks across rows: got {given}; its result would depend on the size of "
            f"batches: {remedy}"
        )
        raise GraphError(msg)


def _is_row_wise(empty: pl.DataFrame, expression: pl.Expr) -> bool:
    """Whether each result depends on its own row only, so that no cut between batches shows.

    The planner of Polars knows: only then does it take a slice of rows before the expression
    instead of after it. Its own predicate, `meta.is_row_separable`, cannot say so of selectors.
    """
    if _DRAWS.search(str(expression)):
        return False  # Even with a seed, what is drawn depends on the place in the batch.
    plan = empty.lazy().with_columns(expression).slice(1, 2).explain()
    return not plan.lstrip().startswith("SLICE")


def _check_reserved(
    expressions: Sequence[pl.Expr], outcome: pl.DataFrame, empty: pl.DataFrame, step: str
) -> None:
    for name in RESERVED_COLUMNS:
        if name not in outcome.columns:
            continue
        writers = [expr for expr in expressions if name in empty.select(expr).columns]
        if name in HIDDEN_COLUMNS or not all(expr.meta.is_column_selection() for expr in writers):
            msg = f"{step} writes the reserved column {name!r}; choose another name with .alias(…)"
            raise GraphError(msg)


def _unknown_column(error: Exception, schema: Schema, step: str) -> str:
    named = _first_line(error).partition('"')[2].partition('"')[0]
    return f"{step} names an unknown column: got {named!r}; {_has(schema)}"


def _has(schema: Schema) -> str:
    columns = user_columns(schema) + [name for name in schema if name == EVENT_TIME]
    return f"the stream has {', '.join(columns) or 'no columns'}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
