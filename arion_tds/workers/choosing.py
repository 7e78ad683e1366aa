"""How many processes are to serve, found out by a first look at the file: `arion-tds serve` without its libraries.

In: the config file, and what the command line asks for. Out: a `Plan`. What is wrong with the file is not said here:
whoever serves judges it whole and says every mistake, so such a file gets one process. Called by cli.serve.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Final, Literal

import yaml

from arion_tds.config import bootstrap, sharing
from arion_tds.errors import ConfigError

MAX_CONFIG_BYTES: Final = 16 << 20
"""Of a file that is looked at; a larger one is refused by whoever judges it."""

_ADMIN: Final = "127.0.0.1:9901"


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """`count` processes. `addresses` that nobody else may have: (who is told of, `host:port`). `log`: level, format."""

    count: int = 1
    addresses: tuple[tuple[str, str], ...] = ()
    log: tuple[str, Literal["text", "json"]] = ("info", "text")


def choose(path: str, asked: int | None) -> Plan:
    """`asked` on the command line wins over the file. ConfigError when so many cannot be had, with why."""
    if asked == 1:
        return Plan()
    value = _read(path)
    if value is None:
        return Plan()
    wanted = value.get("workers") if asked is None else asked
    if wanted is not None and not _is_count(wanted):
        return Plan()
    try:
        found = list(_addresses(value))
    except ValueError:
        return Plan()
    why = sharing.obstacle((whose, address) for whose, address, _ in found)
    if wanted is None:
        wanted = 1 if why else min(sharing.usable(), sharing.USUAL)
    if wanted == 1:
        return Plan()
    if why is not None:
        raise ConfigError([sharing.refusal(wanted, why)])
    own = tuple((whose, address) for whose, address, shared in found if not shared)
    return Plan(wanted, own, _log(value))


def _read(path: str) -> dict[str, Any] | None:
    try:
        with pathlib.Path(path).open("rb") as file:
            raw = file.read(MAX_CONFIG_BYTES + 1)
        value = yaml.load(raw, Loader=yaml.CSafeLoader) if len(raw) <= MAX_CONFIG_BYTES else None
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return None
    if not isinstance(value, dict):
        return None
    return bootstrap.translate(value).config if bootstrap.is_one(value) else value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= sharing.MOST


def _addresses(value: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Whose, where, and whether other gateways may have it too. ValueError when one is no address."""
    admin = value.get("admin")
    address = admin.get("address", _ADMIN) if isinstance(admin, dict) else _ADMIN
    found = [("admin", str(address), False)]
    listeners = value.get("listeners")
    found += [
        (f"listener {one.get('name')!r}", str(one.get("address")), one.get("share_address") is True)
        for one in (listeners if isinstance(listeners, list) else ())
        if isinstance(one, dict)
    ]
    for _, where, _ in found:
        sharing.split_address(where)
    return found


def _log(value: dict[str, Any]) -> tuple[str, Literal["text", "json"]]:
    log = value.get("log")
    given = log if isinstance(log, dict) else {}
    level, style = given.get("level"), given.get("format")
    known = level if level in {"debug", "info", "warning", "error"} else "info"
    return str(known), "json" if style == "json" else "text"
