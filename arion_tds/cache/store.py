"""Accepted resources in one private file, each with its id, version and payload as the control plane sent it.

In: batches of changes. Out: everything that was kept, or what was wrong with the file. Called by cache.keeping, always
in the same worker thread. Nothing is decoded here: what is read goes the same road as a delivery.

The file is an SQLite database, for two reasons: one change costs one row, not the writing of a whole catalog, and no
payload has to stay in memory for it; and a batch is there as a whole or not at all, whenever the process or machine
ends. Its header says whose it is and in which format; each row carries a checksum. A file that is damaged or of another
format is set aside as `catalog.db.damaged-N`; rows that could be read before the damage are kept.
"""

from __future__ import annotations

import dataclasses
import os
import sqlite3
import stat
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from arion_tds.cache.kept import Batch, Kept
from arion_tds.model.delivery import Delivered, Kind, ResourceId

FILE: Final = "catalog.db"
FORMAT: Final = 1
MAX_DAMAGED: Final = 5
"""Damaged files that are kept for a look; the oldest goes first."""

_OURS: Final = 0x61726E74  # "arnt": SQLite's application_id
_BUSY: Final = 2.0  # seconds to wait for another process that writes
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS resource (kind TEXT, scope TEXT, name TEXT, version TEXT NOT NULL,"
    " payload BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (kind, scope, name))",
    "CREATE TABLE IF NOT EXISTS listing (url TEXT PRIMARY KEY, tools BLOB NOT NULL, checksum INTEGER NOT NULL)",
)
_KINDS: Final = {kind.short: kind for kind in Kind}


class Store:
    """One directory's file. Used by one thread at a time; another process may have it open as well."""

    def __init__(self, directory: Path, max_bytes: int) -> None:
        """`max_bytes` bounds the file: what would make it larger is an error of `write`."""
        self.path = directory / FILE
        self._journal = directory / f"{FILE}-journal"
        self._max_bytes = max_bytes
        self._database: sqlite3.Connection | None = None

    def open(self) -> Kept:
        """Read everything, making the directory and file where they are missing. OSError when there can be none."""
        directory = self.path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_foreign(self._journal):
            self._journal.unlink()  # it would be rolled into our file
        if _is_foreign(self.path):
            kept, damage = Kept(), "others own it or can write to it, so it may hold anything"
        else:
            kept, damage = self._read()
        if damage:
            aside = self._set_aside()
            kept = dataclasses.replace(kept, damage=f"{damage}; it is now {aside}")
        try:
            self._open()
            if damage:
                self.write(_batch(kept))
        except sqlite3.Error as error:
            self.close()
            raise OSError(0, f"{self.path}: {error}") from error
        return kept

    def peek(self) -> Kept:
        """Read everything and let go of the file: another process of ours writes it, and sets it aside if need be."""
        if _is_foreign(self._journal) or _is_foreign(self.path):
            return Kept(damage="others own it or can write to it, so it may hold anything")
        kept, damage = self._read()
        self.close()
        return dataclasses.replace(kept, damage=damage)

    def write(self, batch: Batch) -> None:
        """Keep the batch, all or nothing. OSError when that fails."""
        database = self._database
        if database is None:
            raise OSError(0, f"{self.path} is not open")
        try:
            with database:
                _write(database, batch)
        except sqlite3.Error as error:
            raise OSError(0, f"{self.path}: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _read(self) -> tuple[Kept, str]:
        if not self.path.exists():
            return Kept(), ""
        resources: dict[Kind, list[Delivered]] = {kind: [] for kind in Kind}
        listings: dict[str, tuple[bytes, ...]] = {}
        about: dict[str, str] = {}
        damage = ""
        try:
            database = self._open()
            about.update(database.execute("SELECT key, value FROM about"))
            bad = _listings(database, listings) + _resources(database, resources)
            (sound,) = database.execute("PRAGMA integrity_check(1)").fetchone()
            if bad:
                damage = f"{bad} of its entries are damaged and were left out"
            elif sound != "ok":  # a part that was not read, but that writes would need
                damage = f"it is damaged: {' '.join(str(sound).split())[:200]}"
        except sqlite3.Error as error:
            damage = f"it is damaged or not a cache of this gateway: {error}"
        except _OtherFormatError as error:
            damage = str(error)
        if damage:
            self.close()
        return Kept({kind: tuple(found) for kind, found in resources.items()}, listings, about), damage

    def _open(self) -> sqlite3.Connection:
        if self._database is not None:
            return self._database
        # Made here, so that it is private from its first byte on; SQLite gives its journal the same mode.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        self.path.chmod(0o600)
        database = sqlite3.connect(self.path, timeout=_BUSY, check_same_thread=False)
        self._database = database
        (size,) = database.execute("PRAGMA page_size").fetchone()
        database.execute(f"PRAGMA max_page_count = {max(16, self._max_bytes // int(size))}")
        (ours,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        empty = self.path.stat().st_size == 0
        if not empty and (ours, version) != (_OURS, FORMAT):
            raise _OtherFormatError(f"it is of format {ours:x}/{version}, this gateway writes {_OURS:x}/{FORMAT}")
        with database:
            for statement in _SCHEMA:
                database.execute(statement)
            if empty:
                database.execute(f"PRAGMA application_id = {_OURS}")
                database.execute(f"PRAGMA user_version = {FORMAT}")
        return database

    def _set_aside(self) -> Path:
        self.close()
        names = [self.path.with_name(f"{FILE}.damaged-{number}") for number in range(1, MAX_DAMAGED + 1)]
        free = next((name for name in names if not name.exists()), None)
        target = free or min(names, key=lambda name: name.stat().st_mtime)
        self.path.replace(target)
        self._journal.unlink(missing_ok=True)  # it would be rolled into the new file
        return target


class _OtherFormatError(Exception):
    """The file is good, but not one that this version reads."""


def _is_foreign(path: Path) -> bool:
    """Whether somebody else may have written what stands there. Directories of containers are often open to all."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    theirs = found.st_uid != os.geteuid() or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return theirs or not stat.S_ISREG(found.st_mode)


def _write(database: sqlite3.Connection, batch: Batch) -> None:
    database.executemany("DELETE FROM resource WHERE scope = ?", [(scope,) for scope in batch.scopes_gone])
    database.executemany(
        "DELETE FROM resource WHERE kind = ? AND scope = ? AND name = ?",
        [(kind.short, gone.scope, gone.name) for (kind, gone), kept in batch.resources.items() if kept is None],
    )
    database.executemany(
        "INSERT OR REPLACE INTO resource VALUES (?, ?, ?, ?, ?, ?)",
        [_row(kind, kept) for (kind, _), kept in batch.resources.items() if kept is not None],
    )
    database.executemany(
        "DELETE FROM listing WHERE url = ?", [(url,) for url, tools in batch.listings.items() if tools is None]
    )
    packed = {url: _pack(tools) for url, tools in batch.listings.items() if tools is not None}
    database.executemany(
        "INSERT OR REPLACE INTO listing VALUES (?, ?, ?)",
        [(url, tools, _sum(url, tools)) for url, tools in packed.items()],
    )
    database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", batch.about.items())


def _resources(database: sqlite3.Connection, found: dict[Kind, list[Delivered]]) -> int:
    """Every whole row into `found`; how many are not whole. What was read stays when the file breaks off."""
    bad = 0
    for row in database.execute("SELECT * FROM resource"):
        kind, scope, name, version, payload, _ = row
        if _text(kind, scope, name, version) and isinstance(payload, bytes) and kind in _KINDS:
            one = Delivered(ResourceId(scope, name), version, payload, kept=True)
            if row == _row(_KINDS[kind], one):
                found[_KINDS[kind]].append(one)
                continue
        bad += 1
    return bad


def _row(kind: Kind, one: Delivered) -> tuple[str, str, str, str, bytes, int]:
    checksum = _sum(kind.short, str(one.id), one.version, one.payload)
    return kind.short, one.id.scope, one.id.name, one.version, one.payload, checksum


def _listings(database: sqlite3.Connection, found: dict[str, tuple[bytes, ...]]) -> int:
    bad = 0
    for url, packed, checksum in database.execute("SELECT * FROM listing"):
        if _text(url) and isinstance(packed, bytes) and checksum == _sum(url, packed):
            found[url] = _unpack(packed)
        else:
            bad += 1
    return bad


def _batch(kept: Kept) -> Batch:
    return Batch(
        {(kind, one.id): one for kind, found in kept.resources.items() for one in found},
        dict(kept.listings),
        dict(kept.about),
    )


def _text(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)


def _sum(*parts: str | bytes) -> int:
    checksum = 0
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        checksum = zlib.crc32(raw, zlib.crc32(struct.pack("<Q", len(raw)), checksum))
    return checksum


def _pack(tools: Iterable[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(tool)) + tool for tool in tools)


def _unpack(packed: bytes) -> tuple[bytes, ...]:
    tools: list[bytes] = []
    at = 0
    while at < len(packed):
        (size,) = struct.unpack_from("<I", packed, at)
        tools.append(packed[at + 4 : at + 4 + size])
        at += 4 + size
    return tuple(tools)
