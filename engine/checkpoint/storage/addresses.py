"""Snapshot storage: where the folder of a snapshot lies, said by an address.

    a path, file://…     the local file system        local_folder.py
    s3://bucket/prefix   an object store              object_folder.py
    memory://name        this process, for tests

Errors   ConfigError for an address that means none of these.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from engine.checkpoint.storage.folder import Folder
from engine.checkpoint.storage.local_folder import LocalFolder
from engine.errors import ConfigError


def open_folder(url: str) -> Folder:
    """Return the folder at an address. Touches nothing. Raises ConfigError.

    >>> open_folder("file:///tmp/a%20b").url
    '/tmp/a b'
    """
    if re.match(r"(s3|memory)://", url):
        # Imported only when asked for: few jobs need it, and it takes a while.
        from engine.checkpoint.storage.object_folder import open_object_folder

        return open_object_folder(url)
    path = _path_of(url)
    if path is None or not path.strip() or "\0" in path:
        msg = f"snapshot storage cannot be used: got {url!r}; pass a path, file://… or s3://…"
        raise ConfigError(msg)
    return LocalFolder(Path(path))


def _path_of(url: str) -> str | None:
    """The local path that an address means; None when it means none."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    local = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return unquote(parts.path) if local else None
