"""What a terminal shows, what completes, and what `serve` must not carry."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from arion_tds.cli import completion, main, showing


class Terminal:
    """Standard output that somebody looks at."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "60")
        monkeypatch.delenv("NO_COLOR", raising=False)

    def shows(self) -> str:
        return self._capsys.readouterr().out


def test_a_terminal_gets_a_table_with_a_head_and_colour(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(capsys, monkeypatch)
    showing.table(("name", "state"), [(("ns.a", "bold"), ("rejected", "red"))])
    shown = terminal.shows()
    assert "name" in shown
    assert "\x1b[31mrejected" in shown
    showing.line(("ns.a", "bold"), " [not markup]")
    assert "[not markup]" in terminal.shows()


def test_a_pipe_gets_tabs_and_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    showing.table(("name", "state"), [(("ns.a", "bold"), "a\tb\nc")])
    assert capsys.readouterr().out == "ns.a\ta b c\n"


def test_control_and_direction_characters_are_taken_out() -> None:
    assert showing.clean("a\x1b[31mb\u202ec\x9bd") == "a [31mb c d"


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.2, "0 s"), (119.0, "119 s"), (120.0, "2 min"), (7200.0, "2 h"), (2e5, "2 d")]
)
def test_spans_have_one_unit(seconds: float | None, text: str) -> None:
    assert showing.span(seconds) == text


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main.main(["completion", shell]) == 0
    return capsys.readouterr().out


def complete(text: str, *words: str) -> list[str]:
    """What bash proposes for the last of these words."""
    typed = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _arion_tds; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", f"{text}\n{ask}"], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    assert complete(text, "arion-tds", "ex") == ["explain"]
    assert complete(text, "arion-tds", "explain", "--sc") == ["--scope"]
    assert complete(text, "arion-tds", "completion", "") == ["bash", "fish", "zsh"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_the_script_and_the_shell_can_read_it(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    for one in completion._commands():
        assert one.name in text
        for flag, _ in one.options:
            assert (flag[2:] if shell == "fish" else flag) in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def loaded_by(*commands: str) -> set[str]:
    """The modules that are loaded once the parser of these commands is made."""
    code = f"import sys; from arion_tds.cli import main; main.parser({commands!r}); print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_serve_does_not_load_what_draws_tables() -> None:
    assert "rich" not in loaded_by("serve")


def test_a_question_does_not_wait_for_the_gateway_to_load() -> None:
    loaded = loaded_by("explain")
    assert not {"grpc", "numpy", "aiohttp", "rich"} & loaded
