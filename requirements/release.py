"""Check what is about to be released.

    python requirements/release.py versions [TAG]   all files, and the tag, name one version
    python requirements/release.py packages FILE... each works in a clean environment

``make dist`` builds the packages and checks them; the release workflow runs both. What the wheel's
environment was made of is written to build/shortlist.cdx.json, a software bill of materials.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).parent.parent
BILL = ROOT / "build" / "shortlist.cdx.json"
#: Where a version is written, and how to find it there.
PLACES = {
    "src/shortlist/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
}
# Reads data that the package brings, trains, saves, and predicts with what was saved.
COMMANDS = (
    ("--version",),
    ("train", "letter", "-o", "letter.model", "-C", "1"),
    ("evaluate", "letter.model", "letter", "--split", "test"),
)


def versions(tag: str | None = None) -> dict[str, str]:
    """The version each place names; with a tag, also the tag and the newest in the changelog."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = {"pyproject.toml": project["version"]}
    for place, pattern in PLACES.items():
        found[place] = _first(place, pattern)
    if tag is not None:
        found["the tag"] = tag.removeprefix("v")
        found["CHANGELOG.md"] = _first("CHANGELOG.md", r"^## (\d\S*)")
    return found


def _first(place: str, pattern: str) -> str:
    match = re.search(pattern, (ROOT / place).read_text("utf-8"), re.MULTILINE)
    return match.group(1) if match else "none"


def check_versions(tag: str | None) -> None:
    found = versions(tag)
    if len(set(found.values())) > 1:
        sys.exit("versions differ: " + ", ".join(f"{place} {v}" for place, v in found.items()))


def check_package(file: Path) -> None:
    """Install a wheel or an sdist into an environment of its own, and use it there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "venv", with_pip=True)
        programs = Path(folder) / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        _run(folder, programs / "python", "-m", "pip", "install", "--quiet", file.resolve())
        for arguments in COMMANDS:
            _run(folder, programs / "shortlist", *arguments)
        if file.suffix == ".whl":
            BILL.parent.mkdir(exist_ok=True)
            with BILL.open("w", encoding="utf-8") as bill:
                script = ROOT / "requirements" / "supply_chain.py"
                _run(folder, programs / "python", script, "sbom", output=bill)


def _run(folder: str, *command: object, output: TextIO | None = None) -> None:
    subprocess.run([str(part) for part in command], cwd=folder, check=True, stdout=output)


def main() -> None:
    match sys.argv[1:]:
        case ["versions", *tag] if len(tag) <= 1:
            check_versions(tag[0] if tag else None)
        case ["packages", *files] if files:
            for file in files:
                check_package(Path(file))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
