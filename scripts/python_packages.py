"""Install Python packages that must not meet ours into an environment of their own: `python python_packages.py FILE`.

In: a requirements file, such as tests/e2e/upstreams/modern.txt. Out: the `bin` folder of `.venv-<name of the file>/`, printed as
the only line on standard output; status 1 and pip's own words when they cannot be had. Called by tests/e2e.
What is installed and unchanged is left as it is.
"""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSTALL_SECONDS = 300


def main(arguments: list[str]) -> int:
    """Install and print where."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    found = installed(pathlib.Path(arguments[0]))
    if found is None:
        return 1
    print(found)
    return 0


def place(requirements: pathlib.Path) -> pathlib.Path:
    """The folder of the environment."""
    return ROOT / f".venv-{requirements.stem}"


def installed(requirements: pathlib.Path) -> pathlib.Path | None:
    """The folder with the commands, or None when pip fails (said on standard error)."""
    wanted = requirements.read_bytes() + sys.version.encode()
    folder = place(requirements)
    stamp = folder / "installed"
    if stamp.is_file() and stamp.read_text() == hashlib.sha256(wanted).hexdigest():
        return folder / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    commands: tuple[list[pathlib.Path | str], ...] = (
        [sys.executable, "-m", "venv", folder],
        [*pip, "--requirement", requirements],
    )
    try:
        for command in commands:
            subprocess.run(command, stdout=sys.stderr, timeout=INSTALL_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        print(f"{requirements.name} cannot be installed: {error}", file=sys.stderr)
        return None
    stamp.write_text(hashlib.sha256(wanted).hexdigest())
    return folder / "bin"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
