"""A snapshot folder in an object store: s3://bucket/prefix, and memory:// for tests.

    write: spooled to a temporary file while it is measured -> one put, which is atomic

Needs    for s3 the usual variables: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
         AWS_ENDPOINT_URL for another server than Amazon's. None of them is ever shown.
Guarantee  a put is whole or not there; `create` is decided by the store, not by a look before.
Errors   StorageError, with what the store said; a request is tried again for 20 s before that.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache, partial
from typing import IO, TypeVar, cast
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import MemoryStore, ObjectStore, from_url

from engine.checkpoint.storage.folder import Folder, Stored, Write, checked, placed, taken
from engine.errors import ConfigError, StorageError

T = TypeVar("T")

_SPOOL_BYTES = 8 << 20
"""Files up to this size stay in memory on their way; larger ones pass through a temporary file."""

_RETRIES = 4
"""A request that fails is tried so often again, for 20 s at most."""

_MISSING = (NotFoundError, FileNotFoundError)

_MEMORY = MemoryStore()
"""What memory:// means in this process."""


class ObjectFolder(Folder):
    """All objects below a prefix of a store."""

    def __init__(self, store: ObjectStore, prefix: str, url: str) -> None:
        self._store = store
        self._prefix = prefix
        self.url = url

    def write(self, name: str, write: Write, *, create: bool = False) -> Stored:
        """Put an object."""
        path = self._path(name)
        with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spooled:
            file = cast("IO[bytes]", spooled)
            self._do("written", lambda: write(file))
            stored = _measure(file)
            try:
                self._do("written", lambda: self._put(path, file, create))
            except AlreadyExistsError as error:
                # A put that was tried again meets itself, when only the first answer was lost.
                if not self._holds(name, stored):
                    raise StorageError(taken(name, self.url)) from error
        return stored

    def _put(self, path: str, file: IO[bytes], create: bool) -> None:
        obstore.put(self._store, path, file, mode="create" if create else "overwrite")

    def _holds(self, name: str, stored: Stored) -> bool:
        content = self.read(name)
        return content is not None and hashlib.sha256(content).hexdigest() == stored.sha256

    def read(self, name: str) -> bytes | None:
        """Return a whole object, None if there is none."""
        path = self._path(name)
        try:
            return self._do("read", lambda: bytes(obstore.get(self._store, path).bytes()))
        except _MISSING:
            return None

    def open(self, name: str) -> IO[bytes] | None:
        """Fetch an object to be read out of order."""
        path = self._path(name)
        file = cast("IO[bytes]", _Fetched(max_size=_SPOOL_BYTES))
        try:
            self._do("read", lambda: self._fetch(path, file))
        except _MISSING:
            file.close()
            return None
        file.seek(0)
        return file

    def _fetch(self, path: str, file: IO[bytes]) -> None:
        for chunk in obstore.get(self._store, path).stream():
            file.write(chunk)

    def size(self, name: str) -> int | None:
        """Return the size of an object, None if there is none."""
        path = self._path(name)
        try:
            return self._do("read", lambda: int(obstore.head(self._store, path)["size"]))
        except _MISSING:
            return None

    def exists(self) -> bool:
        """Whether any object lies below the prefix."""
        return any(self._paths())

    def children(self) -> list[str]:
        """Names of the prefixes right below this one."""
        found = self._do(
            "read", lambda: obstore.list_with_delimiter(self._store, f"{self._prefix}/")
        )
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])

    def files(self) -> list[str]:
        """Names of all objects below."""
        return sorted(path.removeprefix(f"{self._prefix}/") for path in self._paths())

    def remove(self, names: Collection[str]) -> None:
        """Delete some objects."""
        paths = [self._path(name) for name in names]
        if not paths:
            return
        try:
            self._do("deleted", lambda: obstore.delete(self._store, paths))
        except _MISSING:
            # Some stores stop at the first that is gone.
            for path in paths:
                with suppress(*_MISSING):
                    self._do("deleted", partial(obstore.delete, self._store, path))

    def delete(self) -> None:
        """Delete every object below the prefix."""
        paths = self._paths()
        if paths:
            self._do("deleted", lambda: obstore.delete(self._store, paths))

    def _paths(self) -> list[str]:
        return self._do(
            "read",
            lambda: [
                meta["path"]
                for chunk in obstore.list(self._store, f"{self._prefix}/")
                for meta in chunk
            ],
        )

    def _path(self, name: str) -> str:
        return placed(checked(name, self.url), self._prefix)

    def _do(self, what: str, do: Callable[[], T]) -> T:
        try:
            return do()
        except (*_MISSING, AlreadyExistsError):
            raise
        except (BaseError, OSError) as error:
            reason = str(error).split("\n", maxsplit=1)[0].partition(": <?xml")[0]
            msg = (
                f"snapshot {self.url} cannot be {what}: {reason}; check the address, the "
                "credentials in AWS_… and that the store answers"
            )
            raise StorageError(msg) from error


class _Fetched(tempfile.SpooledTemporaryFile[bytes]):
    """The content of an object. It ends with its last user: a query closes no file."""

    def __del__(self) -> None:
        self.close()


def open_object_folder(url: str) -> ObjectFolder:
    """Return the folder at an s3:// or memory:// address. Touches nothing. Raises ConfigError.

    >>> open_object_folder("memory://tests/a/").url
    'memory://tests/a'
    """
    parts = urlsplit(url)
    if not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
        msg = f"snapshot storage cannot be used: got {url!r}; pass e.g. s3://bucket/checkpoints"
        raise ConfigError(msg)
    path = parts.path.strip("/")
    shown = f"{parts.scheme}://{parts.netloc}/{path}".rstrip("/")
    if parts.scheme == "memory":
        return ObjectFolder(_MEMORY, f"{parts.netloc}/{path}".rstrip("/"), shown)
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    return ObjectFolder(_bucket(parts.netloc, endpoint), path, shown)


@lru_cache(maxsize=32)
def _bucket(name: str, endpoint: str) -> ObjectStore:
    """A client of a bucket; the credentials are read from the environment."""
    return from_url(
        f"s3://{name}",
        client_options={"allow_http": endpoint.startswith("http://"), "timeout": "10s"},
        retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=20)},
    )


def _measure(file: IO[bytes]) -> Stored:
    size_bytes = file.tell()
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
    file.seek(0)
    return Stored(size_bytes, digest.hexdigest())
