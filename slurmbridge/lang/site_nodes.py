"""What does a site file say about nodes that come from a cluster? Its section `nodes` as `NodeRules`.

Labels are named as the cluster has them; which mean what is a site's own business, so that all of it has a default or none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import yaml
from msgspec.structs import replace

from slurmbridge.lang.site_pods import Reader
from slurmbridge.model.fleet import FeatureLabel, NodeRules

_LABEL: Final = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.=-]*")


def label(reader: Reader, node: yaml.Node, name: str) -> str:
    found = reader.text(node, name)
    if not _LABEL.fullmatch(found) or len(found) > 317:
        raise reader.wrong(node, f"'{found}' is no name of a label")
    return found


def _labels(reader: Reader, node: yaml.Node, name: str) -> tuple[str, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise reader.wrong(node, f"{name} is not a list")
    found = [label(reader, each, f"an entry of {name}") for each in node.value]
    for place, each in enumerate(found):
        if each in found[:place]:
            raise reader.wrong(node.value[place], f"{name} has {each} twice")
    return tuple(found)


def _features(reader: Reader, node: yaml.Node) -> tuple[FeatureLabel, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise reader.wrong(node, "features is not a list")
    return tuple(_feature(reader, each) for each in node.value)


def _feature(reader: Reader, node: yaml.Node) -> FeatureLabel:
    if not isinstance(node, yaml.MappingNode):
        return FeatureLabel(label=label(reader, node, "an entry of features"))
    found: dict[str, str] = {}
    for key, value in reader.entries(node, "an entry of features"):
        if key.value == "label":
            found["label"] = label(reader, value, "label")
        elif key.value == "feature":
            found["feature"] = reader.text(value, "feature")
            if not _WORD.fullmatch(found["feature"]):
                raise reader.wrong(value, f"'{found['feature']}' is no name of a feature")
        else:
            raise reader.wrong(key, f"an entry of features has no field '{key.value}'; fields are feature, label")
    if "label" not in found:
        raise reader.wrong(node, "an entry of features has no label")
    return FeatureLabel(label=found["label"], feature=found.get("feature", ""))


def _domain(reader: Reader, node: yaml.Node) -> str:
    found = reader.text(node, "domain").strip(".")
    if not _DOMAIN.fullmatch(found):
        raise reader.wrong(node, f"'{found}' is no domain")
    return found


def _types(reader: Reader, node: yaml.Node) -> tuple[tuple[str, str], ...]:
    found = reader.texts(node, "gpuTypes")
    for (_, kind), (_, value) in zip(found, reader.entries(node, "gpuTypes"), strict=True):
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", kind):
            raise reader.wrong(value, f"'{kind}' is no type of a GPU")
    return found


def _label_of(name: str) -> Callable[[Reader, yaml.Node], str]:
    return lambda reader, node: label(reader, node, name)


FIELDS: Final[Mapping[str, tuple[str, Callable[[Reader, yaml.Node], object]]]] = {
    "domain": ("domain", _domain),
    "features": ("features", _features),
    "gpuResource": ("gpu_resource", _label_of("gpuResource")),
    "gpuTypes": ("gpu_types", _types),
    "sockets": ("sockets", _label_of("sockets")),
    "threadsPerCore": ("threads_per_core", _label_of("threadsPerCore")),
    "topology": ("topology", lambda reader, node: _labels(reader, node, "topology")),
    "weight": ("weight", _label_of("weight")),
}
"""Field of the section -> field of the rules, and how it is read."""


def read_rules(section: yaml.Node | None, file: str) -> tuple[NodeRules, tuple[tuple[str, int], ...]]:
    """The rules, and (field, line) of all that is written. ConfigError: a field that is not known, a value that is none."""
    reader = Reader(file, "nodes")
    changed: dict[str, object] = {}
    written: list[tuple[str, int]] = []
    is_nothing = section is None or section.tag == "tag:yaml.org,2002:null"
    for key, value in () if is_nothing or section is None else reader.entries(section, "nodes"):
        if key.value not in FIELDS:
            raise reader.wrong(key, f"there is no field '{key.value}'; fields are {', '.join(FIELDS)}")
        field, read = FIELDS[key.value]
        if field in changed:
            raise reader.wrong(key, f"{key.value} is there twice")
        changed[field] = read(reader, value)
        written.append((key.value, key.start_mark.line + 1))
    return replace(NodeRules(), **changed), tuple(written)
