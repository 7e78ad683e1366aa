"""A folder of documents, followed: which resources came, changed and went since the last look.

In: a folder of *.yaml, *.yml and *.json files (subfolders are not read). Out: `Scan`s with updates, removals and one
sentence per file that cannot be taken. Called by __main__ in a thread, by one caller at a time.

After the first look, a file counts as changed or gone only when two looks in a row see it so: a half-written or
just replaced file does not take tools away. A file that cannot be read, parsed or taken leaves what it served before,
so does one without any document; it is looked at again when it changes, or when another file does that it collided
with. A folder that vanished leaves everything. Removing a file removes its resources.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Final

from control_plane_example import documents
from control_plane_example.documents import Document, Fault
from control_plane_example.snapshot import Held, Key

SUFFIXES: Final = (".yaml", ".yml", ".json")
MAX_FILE_BYTES: Final = 64 << 20
MAX_FILES: Final = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class Scan:
    """What a look at the folder brought. `faults`: the problems of all files that have one now, by file name."""

    updates: tuple[tuple[Key, Held], ...] = ()
    removals: tuple[Key, ...] = ()
    faults: dict[str, str] = dataclasses.field(default_factory=dict)
    news: bool = False
    """Whether anything about the folder differs from the look before."""


@dataclasses.dataclass(slots=True)
class _File:
    stamp: tuple[int, int, int]
    served: dict[Key, Document] = dataclasses.field(default_factory=dict)
    fault: str | None = None
    collided: dict[Key, Document] | None = None  # good in itself, but another file has one of its names


class Folder:
    """The state of one folder between looks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, _File] = {}
        self._owners: dict[Key, str] = {}
        self._fault: str | None = None
        self._seen: dict[str, tuple[int, int, int]] | None = None

    def scan(self) -> Scan:
        """Look at the folder: stat every file, read those that are new or changed."""
        try:
            stamps = _stamps(self.path)
        except OSError as error:
            fault = f"folder cannot be read: {error.strerror or error}; what it served stays"
            news, self._fault = fault != self._fault, fault
            return Scan(faults=self._faults(), news=news)
        news, self._fault = self._fault is not None, None
        if len(stamps) > MAX_FILES:
            fault = f"more than {MAX_FILES} files in the folder; what it served stays"
            news, self._fault = fault != self._fault, fault
            return Scan(faults=self._faults(), news=news)
        seen, self._seen = stamps if self._seen is None else self._seen, stamps
        gone = [name for name in self._files if name not in stamps and name not in seen]
        fresh = [
            name
            for name, stamp in stamps.items()
            if seen.get(name) == stamp and (name not in self._files or self._files[name].stamp != stamp)
        ]
        if not gone and not fresh:
            return Scan(faults=self._faults(), news=news)
        candidates: dict[str, dict[Key, Document]] = {
            name: file.collided
            for name, file in self._files.items()
            if file.collided is not None and name in stamps and name not in fresh
        }
        for name in fresh:
            found = self._read(name, stamps[name])
            if found is not None:
                candidates[name] = found
        updates, removals = self._settle(gone, candidates)
        return Scan(updates, removals, self._faults(), news=True)

    def _read(self, name: str, stamp: tuple[int, int, int]) -> dict[Key, Document] | None:
        file = self._files.setdefault(name, _File(stamp))
        file.stamp, file.collided = stamp, None
        found = _documents(self.path / name)
        if isinstance(found, Fault):
            file.fault = found.text
            return None
        return {document.key: document for document in found}

    def _settle(
        self, gone: list[str], candidates: dict[str, dict[Key, Document]]
    ) -> tuple[tuple[tuple[Key, Held], ...], tuple[Key, ...]]:
        """Take over every candidate that collides with nothing; the one later in name order gives way."""
        before: dict[Key, Held] = {}
        for name in (*gone, *candidates):
            before.update({key: document.held for key, document in self._files[name].served.items()})
            for key in self._files[name].served:
                del self._owners[key]
        for name in gone:
            del self._files[name]
        accepted, losers = self._choose(candidates)
        after: dict[Key, Held] = {}
        for name, candidate in candidates.items():
            file = self._files[name]
            if name in accepted:
                file.served, file.fault, file.collided = accepted[name], None, None
            else:
                file.fault, file.collided = losers[name], candidate
            for key, document in file.served.items():
                self._owners[key] = name
                after[key] = document.held
        updates = tuple((key, held) for key, held in after.items() if before.get(key) != held)
        return updates, tuple(key for key in before if key not in after)

    def _choose(
        self, candidates: dict[str, dict[Key, Document]]
    ) -> tuple[dict[str, dict[Key, Document]], dict[str, str]]:
        accepted = dict(candidates)
        losers: dict[str, str] = {}
        while True:
            # What a refused file served before stays, so each refusal may refuse another; it ends with all refused.
            owners: dict[Key, str] = {}
            for name in losers:
                owners.update(dict.fromkeys(self._files[name].served, name))
            collision = None
            for name in sorted(accepted):
                for key in accepted[name]:
                    other = self._owners.get(key) or owners.get(key)
                    if other is not None:
                        collision = (name, f"{documents.describe(key)} stands in {other} too: keep one of them")
                        break
                    owners[key] = name
                if collision is not None:
                    break
            if collision is None:
                return accepted, losers
            del accepted[collision[0]]
            losers[collision[0]] = collision[1]

    def _faults(self) -> dict[str, str]:
        faults = {name: file.fault for name, file in sorted(self._files.items()) if file.fault is not None}
        return faults if self._fault is None else {".": self._fault, **faults}


def _stamps(path: Path) -> dict[str, tuple[int, int, int]]:
    stamps: dict[str, tuple[int, int, int]] = {}
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.name.endswith(SUFFIXES) or entry.name.startswith("."):
                continue
            try:
                if entry.is_file():
                    stat = entry.stat()
                    stamps[entry.name] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            except FileNotFoundError:
                continue  # gone between the listing and the look
    return stamps


def _documents(path: Path) -> list[Document] | Fault:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return Fault(f"cannot be read: {error.strerror or error}")
    if len(data) > MAX_FILE_BYTES:
        return Fault(f"larger than {MAX_FILE_BYTES} bytes: split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Fault(f"not UTF-8: {error}")
    return documents.read(text)
