"""Install the npm packages of a folder's package-lock.json into `.node/`: `python scripts/node_packages.py FOLDER`.

In: a folder with package.json and package-lock.json. Out: the `bin` folder with their commands, printed as the only line
on standard output; status 1 and npm's own words when they cannot be had. Called by `make conformance` and tests/e2e.
What is installed and unchanged is left as it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / ".node"
NAMES = ("package.json", "package-lock.json")
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


def installed(folder: pathlib.Path) -> pathlib.Path | None:
    """The folder with the commands, or None when npm is missing or fails (said on standard error)."""
    npm = shutil.which("npm")
    if npm is None:
        print("npm is not installed: it comes with Node.js", file=sys.stderr)
        return None
    wanted = b"".join((folder / name).read_bytes() for name in NAMES)
    digest = hashlib.sha256(wanted).hexdigest()
    place = CACHE / folder.resolve().relative_to(ROOT).as_posix().replace("/", "-")
    CACHE.mkdir(exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run side by side want the same packages
        return _installed(npm, folder, place, digest)


def _installed(npm: str, folder: pathlib.Path, place: pathlib.Path, digest: str) -> pathlib.Path | None:
    bin_folder = place / "node_modules" / ".bin"
    stamp = place / "installed"
    if stamp.is_file() and stamp.read_text() == digest:
        return bin_folder
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in NAMES:
        shutil.copy(folder / name, place / name)
    # Not `npm ci`: it refuses locks in which an optional package of another platform is unresolved.
    command = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--omit=optional", "--loglevel=error"]
    try:
        done = subprocess.run(command, cwd=place, stdout=sys.stderr, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        print(f"npm install did not end within {INSTALL_SECONDS} s", file=sys.stderr)
        return None
    if done.returncode != 0:
        print(f"npm install failed with {done.returncode}", file=sys.stderr)
        return None
    stamp.write_text(digest)
    return bin_folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
