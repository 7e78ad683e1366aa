"""`arion-tds check [-c gateway.yaml] [DOCUMENT …]`: judge a config, control-plane documents, or both, offline."""

from __future__ import annotations

import argparse
import functools
import pathlib
import sys
from collections.abc import Callable, Iterator

from arion_tds import doors, fitting, offline
from arion_tds.backends import tls
from arion_tds.codemode import deno
from arion_tds.config import judging
from arion_tds.config.judging import Config
from arion_tds.errors import ConfigError
from arion_tds.metrics import Metrics


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("check", help="judge a config or control-plane documents and say every mistake")
    parser.add_argument("-c", "--config", metavar="FILE", help="gateway.yaml; documents are then judged by its rules")
    parser.add_argument("documents", nargs="*", metavar="DOCUMENT", help="files or folders of arion-ctl documents")
    parser.set_defaults(run=run, usage=parser.error)


def run(chosen: argparse.Namespace) -> int:
    """Print what is wrong (status 1) or a line that all is well (status 0)."""
    if chosen.config is None and not chosen.documents:
        chosen.usage("name a config (-c FILE), documents, or both")
    world = offline.World()
    if chosen.config is not None:
        loaded = judging.load(chosen.config)
        fitting.shareable(loaded.file, loaded.file.workers or 1)
        for warning in loaded.warnings:
            print(f"warning: {warning}")
        for problem in _not_here(loaded):
            print(f"warning: would not start on this machine: {problem}")
        listeners = len(loaded.file.listeners)
        print(f"{chosen.config}: good: {listeners} listener{'s' if listeners > 1 else ''}")
        world = world_of(loaded)
    judged = offline.judge(files(chosen.documents), world)
    empty = [name for name in chosen.documents if not files([name])]
    for name in empty:
        print(f"{name}: holds no document (*.yaml, *.yml, *.json)", file=sys.stderr)
    for one in judged:
        for problem in one.problems:
            print(f"{one.where}: {one.name + ': ' if one.name else ''}{problem}", file=sys.stderr)
        for warning in one.warnings:
            print(f"{one.where}: warning: {warning}")
        if not one.problems:
            print(f"{one.where}: {one.name}: good" + (f", {one.tools} tools" if one.tools > 1 else ""))
    return 1 if empty or any(one.problems for one in judged) else 0


def _not_here(config: Config) -> Iterator[str]:
    """What a start needs beside the config: files, variables, the sandbox. It may be judged where it is not run."""
    clocks, metrics, plane = doors.Clocks(lambda: 0.0, lambda: 0.0), Metrics(), config.file.control_plane
    wanted: list[Callable[[], object]] = [lambda: _clusters(config)]
    if plane is not None:
        wanted.append(functools.partial(judging.credentials, plane))
    for listener, gateway in zip(config.file.listeners, config.gateways, strict=True):
        wanted.append(functools.partial(doors.Door, listener, gateway.name, metrics, clocks))
    if any(gateway.code_mode is not None for gateway in config.gateways):
        wanted.append(deno.find)
    for make in wanted:
        try:
            make()
        except ConfigError as error:
            yield from error.problems


def _clusters(config: Config) -> None:
    """ConfigError when what upstreams are made of is not there."""
    for name, cluster in fitting.settings(config)[1].items():
        try:
            if cluster.tls is not None:
                tls.context(cluster.tls)
        except ValueError as error:
            raise ConfigError([f"cluster {name!r}: {error}"]) from error


def world_of(config: Config) -> offline.World:
    """What a gateway of this config lets documents do."""
    scopes = [
        (gateway.scope, listener.tool_names, gateway.code_mode is not None)
        for gateway, listener in zip(config.gateways, config.file.listeners, strict=True)
        if gateway.scope is not None
    ]
    return offline.World(
        rules=judging.delivered_rules(config.file.data_sources),
        limits=config.file.openapi.settings(),
        output=config.file.openapi.output,
        naming={scope: naming for scope, naming, _ in scopes},
        code_mode=frozenset(scope for scope, _, code in scopes if code),
        clusters=frozenset(cluster.name for cluster in config.file.clusters),
        scopes=frozenset(scope for scope, _, _ in scopes),
        fleet=config.file.node.cluster,
    )


def files(named: list[str]) -> list[pathlib.Path]:
    """The files, and those of the folders in order."""
    found: list[pathlib.Path] = []
    for name in named:
        path = pathlib.Path(name)
        if path.is_dir():
            found += sorted(one for one in path.rglob("*") if one.suffix in {".yaml", ".yml", ".json"})
        else:
            found.append(path)
    return found
