r"""The part of a traceback that a job's author can do something about.

>>> print(user_code('''Traceback (most recent call last):
...   File "/site-packages/engine/operators/records/rows.py", line 1, in on_batch
...     call()
...   File "/home/me/job.py", line 7, in parse
...     return row["tem"]
... KeyError: 'tem'
...
... The above exception was the direct cause of the following exception:
... …'''))
Traceback (most recent call last):
  File "/home/me/job.py", line 7, in parse
    return row["tem"]
KeyError: 'tem'
"""

from __future__ import annotations

import re
from pathlib import Path

ENGINE = str(Path(__file__).parents[1])
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)"')
_NEXT = re.compile(r"\n\n(The above exception was|During handling of the above)")


def user_code(traceback: str) -> str:
    """The first exception of a chain, without the engine's own frames unless all are."""
    first = _NEXT.split(traceback, maxsplit=1)[0].rstrip()
    frames = [part for part in re.split(r"(?m)^(?=  File \"|\S)", first) if part]
    kept = [frame for frame in frames if not _is_engine(frame)]
    of_user = any(_FRAME.match(frame) for frame in kept)
    return ("".join(kept) if of_user else first).rstrip()


def _is_engine(frame: str) -> bool:
    found = _FRAME.match(frame)
    return found is not None and (
        found["file"].startswith(ENGINE) or "/site-packages/engine/" in found["file"]
    )
