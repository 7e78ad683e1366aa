"""`arion-tds completion bash|zsh|fish`: a script that completes commands, options and the names of served tools."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Final

from arion_tds.cli import main

_DYNAMIC: Final = ("explain", "call")
"""Commands whose first argument is the name of a tool: a running gateway is asked for it."""

_NAMES: Final = "arion-tds tools --names 2>/dev/null"


@dataclasses.dataclass(frozen=True, slots=True)
class _Command:
    name: str
    help: str
    options: tuple[tuple[str, str], ...]
    files: bool


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("completion", help="print a shell's completion script")
    parser.add_argument("shell", choices=sorted(_SHELLS))
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the script; its first line says where to put it."""
    print(_SHELLS[chosen.shell](_commands()), end="")
    return 0


def _commands() -> list[_Command]:
    """What there is to complete, read from the parser itself."""
    whole = main.parser()
    (subparsers,) = (one for one in whole._actions if isinstance(one, argparse._SubParsersAction))  # noqa: SLF001
    helps = {one.dest: one.help or "" for one in subparsers._choices_actions}  # noqa: SLF001
    found = []
    for name, parser in subparsers.choices.items():
        options = []
        files = False
        for action in parser._actions:  # noqa: SLF001
            if action.help is argparse.SUPPRESS:
                continue
            files = files or action.metavar in {"FILE", "DOCUMENT"}
            options += [(flag, action.help or "") for flag in action.option_strings if flag.startswith("--")]
        found.append(_Command(name, helps.get(name, ""), tuple(options), files))
    return found


def _bash(commands: list[_Command]) -> str:
    cases = "".join(
        f"        {one.name}) words='{' '.join(flag for flag, _ in one.options)}'; files={int(one.files)} ;;\n"
        for one in commands
    )
    return f"""\
# arion-tds completion bash > /etc/bash_completion.d/arion-tds   (or: source <(arion-tds completion bash))
_arion_tds() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} words='' files=0
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{" ".join(one.name for one in commands)} --help --version' -- "$cur"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}    esac
    case "$cur" in
        -*) COMPREPLY=($(compgen -W "$words" -- "$cur")); return ;;
    esac
    case "${{COMP_WORDS[1]}}" in
        {"|".join(_DYNAMIC)}) [ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W "$({_NAMES})" -- "$cur")) ;;
        completion) COMPREPLY=($(compgen -W 'bash fish zsh' -- "$cur")) ;;
        *) [ "$files" -eq 1 ] && COMPREPLY=($(compgen -f -- "$cur")) ;;
    esac
}}
complete -F _arion_tds arion-tds
"""


def _zsh(commands: list[_Command]) -> str:
    listed = " ".join(f"'{one.name}:{_quiet(one.help)}'" for one in commands)
    cases = ""
    for one in commands:
        options = " ".join(f"'{flag}[{_quiet(text)}]'" for flag, text in one.options)
        rest = "'1:tool:_arion_tds_names'" if one.name in _DYNAMIC else "'*:file:_files'" if one.files else ""
        rest = "'1:shell:(bash fish zsh)'" if one.name == "completion" else rest
        cases += f"        {one.name}) _arguments {options} {rest} ;;\n"
    return f"""\
#compdef arion-tds
# arion-tds completion zsh > "${{fpath[1]}}/_arion-tds"
_arion_tds_names() {{
    local -a names
    names=(${{(f)"$({_NAMES})"}})
    compadd -a names
}}
_arion_tds() {{
    if (( CURRENT == 2 )); then
        local -a commands
        commands=({listed})
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
{cases}    esac
}}
_arion_tds "$@"
"""


def _fish(commands: list[_Command]) -> str:
    lines = ["# arion-tds completion fish > ~/.config/fish/completions/arion-tds.fish", "complete -c arion-tds -f"]
    for one in commands:
        first = f"complete -c arion-tds -n __fish_use_subcommand -a {one.name} -d '{_quiet(one.help)}'"
        seen = f"complete -c arion-tds -n '__fish_seen_subcommand_from {one.name}'"
        lines.append(first)
        lines += [f"{seen} -l {flag[2:]} -d '{_quiet(text)}'" for flag, text in one.options]
        if one.name in _DYNAMIC:
            lines.append(f"{seen} -a '({_NAMES})'")
        elif one.name == "completion":
            lines.append(f"{seen} -a 'bash fish zsh'")
        elif one.files:
            lines.append(f"{seen} -F")
    return "\n".join(lines) + "\n"


def _quiet(text: str) -> str:
    """Help text without what quoting, zsh's brackets and colons would trip over."""
    return "".join(" " if letter in "'[]:`\\" else letter for letter in text).replace("%%", "%").strip()


_SHELLS: Final[dict[str, Callable[[list[_Command]], str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
