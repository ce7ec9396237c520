"""Where snapshots may lie that clients name over REST: paths never lead anywhere else.

    place(address) ─▶ Place: the address, and the configured folder that it lies in
                   ─▶ Forbidden

Shapes   a local path counts where its links lead to; an address in an object store counts as text,
         and may not go up. What the engine itself has recorded is a place of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.checkpoint.storage.addresses import open_folder
from engine.checkpoint.storage.confined_folder import ConfinedFolder, real_path
from engine.checkpoint.storage.folder import Folder
from engine.checkpoint.storage.local_folder import LocalFolder
from engine.cluster.settings.job_settings import absolute
from engine.rest.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that may be read, and how far its files may lie apart."""

    url: str
    root: str

    def open(self, url: str, *, opens: bool = False) -> Folder:
        """The folder at this place, or another one of the same root."""
        folder = open_folder(url)
        if isinstance(folder, LocalFolder):
            return ConfinedFolder(Path(folder.url), Path(self.root), opens=opens)
        return folder


class Places:
    """The folders that are configured, asked for each time: a new job may bring its own."""

    def __init__(
        self, configured: Callable[[], Iterable[str]], recorded: Callable[[], Iterable[str]]
    ) -> None:
        """`recorded`: folders of single snapshots that the engine wrote where it was told to."""
        self._configured = configured
        self._recorded = recorded

    def place(self, given: str) -> Place:
        """Where a client's address leads. Raises Forbidden, ConfigError."""
        url = open_folder(absolute(given)).url
        roots = list(dict.fromkeys(map(_url, self._configured())))
        for root in roots:
            if _lies_in(url, root):
                return Place(url, root)
        if url in map(_url, self._recorded()):
            # Checkpoints share files with those beside them.
            return Place(url, url.rpartition("/")[0])
        msg = (
            f"snapshot {url} lies outside of the folders that this engine shows: {', '.join(roots)}"
            "; put it there, or start the job manager with --snapshots"
        )
        raise Forbidden(msg)


def _url(path: str) -> str:
    return open_folder(path).url


def _lies_in(url: str, root: str) -> bool:
    if "://" in url or "://" in root:
        below = url == root or url.startswith(f"{root.rstrip('/')}/")
        return below and ".." not in url.split("/")
    # Links are followed before anything is compared: "a/../b" too means what the system says.
    return real_path(Path(url)).is_relative_to(real_path(Path(root)))
