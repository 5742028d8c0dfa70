"""Render the chart without Helm: python -m k8s.render [--values FILE] [--namespace NS] | kubectl apply -f -

The objects are those that `helm template` gives. Values are checked against the chart's schema first.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from .gotemplate import Templates, Wrong
from .schema import problems

CHART = Path(__file__).resolve().parent / "slurmbridge"


def merged(base: Any, over: Any) -> Any:
    """Values over values as Helm lays them: mappings key by key, null takes a key away, all else replaces."""
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    found = {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}
    return {key: value for key, value in found.items() if not (key in over and over[key] is None and key in base)}


def values_of(given: Mapping[str, Any], chart: Path = CHART) -> dict[str, Any]:
    """The chart's own with what is given. Wrong: the schema refuses them."""
    found = merged(yaml.safe_load((chart / "values.yaml").read_text()), given)
    wrong = list(problems(found, json.loads((chart / "values.schema.json").read_text())))
    if wrong:
        raise Wrong("\n".join(wrong))
    assert isinstance(found, dict)
    return found


def texts(
    given: Mapping[str, Any], *, release: str = "slurmbridge", namespace: str = "slurmbridge", chart: Path = CHART
) -> dict[str, str]:
    """Name of a template -> what it gives."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    scope = {
        "Values": values_of(given, chart),
        "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
        "Chart": {"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
    }
    templates = Templates()
    read = {path.name: templates.read(path.read_text()) for path in sorted((chart / "templates").iterdir())}
    return {name: templates.render(nodes, scope) for name, nodes in read.items() if not name.startswith("_")}


def objects(given: Mapping[str, Any], *, release: str = "slurmbridge", namespace: str = "slurmbridge") -> list[dict[str, Any]]:  # fmt: skip
    """All that would be made."""
    found = []
    for name, text in texts(given, release=release, namespace=namespace).items():
        if name.endswith(".yaml"):
            try:
                found += [each for each in yaml.safe_load_all(text) if each]
            except yaml.YAMLError as fault:
                raise Wrong(f"{name}: {fault}") from fault
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m k8s.render", description="The chart's objects, without Helm.")
    parser.add_argument("-f", "--values", metavar="FILE", action="append", default=[], help="values (YAML), over the chart's own")  # fmt: skip
    parser.add_argument("-n", "--namespace", default="slurmbridge", help="where it is installed (default %(default)s)")
    parser.add_argument("--release", default="slurmbridge", help="name of what is installed (default %(default)s)")
    given = parser.parse_args(words)
    try:
        values: Any = {}
        for file in given.values:
            values = merged(values, yaml.safe_load(Path(file).read_text()) or {})
        made = texts(values, release=given.release, namespace=given.namespace)
    except (Wrong, OSError, yaml.YAMLError) as fault:
        print(f"render: {fault}", file=sys.stderr)
        return 1
    for name, text in made.items():
        if name.endswith(".yaml") and text.strip():
            sys.stdout.write(f"---\n# {name}\n{text.strip()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
