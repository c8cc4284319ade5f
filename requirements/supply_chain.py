"""What Shortlist is built from, written from pyproject.toml and the packages installed here.

    python requirements/supply_chain.py lock     exact versions of all packages for development
    python requirements/supply_chain.py lowest   the lowest versions that pyproject.toml allows
    python requirements/supply_chain.py sbom     a software bill of materials, CycloneDX 1.6

Each is written to standard output. ``make lock``, ``make test-lowest`` and ``make dist`` use them.
"""

import json
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text("utf-8"))


def runtime() -> list[Requirement]:
    return [Requirement(text) for text in PROJECT["project"]["dependencies"]]


def extras() -> list[Requirement]:
    groups = PROJECT["project"]["optional-dependencies"]
    listed = (text for name, group in groups.items() if name != "all" for text in group)
    return [Requirement(text) for text in listed]


def development() -> list[Requirement]:
    groups = PROJECT["dependency-groups"].values()
    return [Requirement(text) for group in groups for text in group if isinstance(text, str)]


def installed(wanted: Iterable[Requirement]) -> Iterator[Distribution]:
    """The packages wanted, and those that they want, each once, by name."""
    found: dict[str, Distribution] = {}
    pending = list(wanted)
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name in found or not _applies(requirement):
            continue
        try:
            found[name] = distribution(requirement.name)
        except PackageNotFoundError:
            sys.exit(f"{requirement.name} is not installed here: install all extras and groups")
        for text in found[name].requires or []:
            below = Requirement(text)
            if _applies(below, requirement.extras):
                below.marker = None
                pending.append(below)
    return (found[name] for name in sorted(found))


def _applies(requirement: Requirement, extras: Iterable[str] = ()) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": each}) for each in [*extras, ""])


def lock() -> str:
    """Exact versions; a build of a version for one machine (+cpu) is left to the machine."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    lines = [f"# Python {python}, {sys.platform}. Made by make lock; used by make test LOCK=..."]
    for package in installed([*runtime(), *extras(), *development()]):
        lines.append(f"{_name(package)}=={package.version.partition('+')[0]}")
    return "\n".join(lines)


def lowest() -> str:
    lines = set()
    for requirement in [*runtime(), *extras()]:
        bounds = [each.version for each in requirement.specifier if each.operator == ">="]
        lines.add(f"{requirement.name}=={bounds[0]}")
    return "\n".join(sorted(lines))


def sbom() -> str:
    """The package and what it needs at run time, each with its version and licence."""
    project = PROJECT["project"]
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    packages = list(installed(runtime()))
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": [_component(package) for package in packages],
        "dependencies": [
            {"ref": own, "dependsOn": sorted(_purl(distribution(r.name)) for r in runtime())},
            *({"ref": _purl(p), "dependsOn": sorted(_needs(p))} for p in packages),
        ],
    }
    return json.dumps(content, indent=2)


def _component(package: Distribution) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(package),
        "name": _name(package),
        "version": package.version,
        "purl": _purl(package),
    }
    expression = package.metadata.get("License-Expression")
    classifiers = package.metadata.get_all("Classifier") or []
    named = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    if expression:
        found["licenses"] = [{"expression": expression}]
    elif named:
        found["licenses"] = [{"license": {"name": name}} for name in named]
    return found


def _needs(package: Distribution) -> Iterator[str]:
    for requirement in map(Requirement, package.requires or []):
        if _applies(requirement):
            yield _purl(distribution(requirement.name))


def _name(package: Distribution) -> str:
    return canonicalize_name(package.metadata["Name"])


def _purl(package: Distribution) -> str:
    return f"pkg:pypi/{_name(package)}@{package.version}"


def main() -> None:
    commands = {each.__name__: each for each in (lock, lowest, sbom)}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    sys.stdout.write(commands[sys.argv[1]]() + "\n")


if __name__ == "__main__":
    main()
