"""What does a site file say about pods? The fields of `defaults` and of a partition as a `PodTemplate`.

Values keep Kubernetes' shapes; they are checked as far as a person is likely to mistype them, each error with its line.
What an API server would refuse beyond that it refuses when the first pod is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import yaml
from msgspec.structs import replace

from slurmbridge.errors import ConfigError
from slurmbridge.lang.site_fields import SHARINGS
from slurmbridge.model.pods import Json, Manifest, PodTemplate

OF_THE_SUBMITTER: Final = ("runAsGroup", "runAsNonRoot", "runAsUser", "supplementalGroups")
CONTEXT: Final = (
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "fsGroupChangePolicy", "privileged",
    "procMount", "readOnlyRootFilesystem", "seLinuxChangePolicy", "seLinuxOptions", "seccompProfile",
    "supplementalGroupsPolicy", "sysctls",
)  # fmt: skip
WAYS: Final = ("auto", "image", "copy", "hostPath")
OURS: Final = "slurmbridge"
"""Names of volumes and paths that begin like this are the supervisor's."""
_QUANTITY: Final = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


class Reader:
    """Of one section (`defaults`, `partition NAME`) of one file."""

    def __init__(self, file: str, what: str) -> None:
        self.file, self.what = file, what

    def wrong(self, node: yaml.Node, message: str) -> ConfigError:
        return ConfigError(f"{self.what}: {message}", file=self.file, line=node.start_mark.line + 1)

    def value(self, node: yaml.Node) -> Json:
        """A YAML node as JSON has it."""
        if isinstance(node, yaml.MappingNode):
            return {str(key.value): self.value(value) for key, value in self.entries(node, "a mapping")}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each) for each in node.value]
        try:
            plain = yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError) as fault:
            raise self.wrong(node, f"'{node.value}' is no value") from fault
        return plain if plain is None or isinstance(plain, (str, int, float, bool)) else str(node.value)

    def entries(self, node: yaml.Node, name: str) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, f"{name} is not a mapping")
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.wrong(key, f"a key of {name} is not a word")
            yield key, value

    def text(self, node: yaml.Node, name: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self.wrong(node, f"{name} is not a text")
        return str(node.value)

    def texts(self, node: yaml.Node, name: str) -> tuple[tuple[str, str], ...]:
        return tuple(
            (str(key.value), self.text(value, f"{name} {key.value}")) for key, value in self.entries(node, name)
        )

    def truth(self, node: yaml.Node, name: str) -> bool:
        found = self.value(node)
        if not isinstance(found, bool):
            raise self.wrong(node, f"{name} is true or false")
        return found

    def whole(self, node: yaml.Node, name: str) -> int:
        found = self.value(node)
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise self.wrong(node, f"{name} is a whole number of at least 0")
        return found

    def objects(self, node: yaml.Node, name: str, needed: Sequence[str]) -> tuple[Manifest, ...]:
        """A list of mappings that have these texts."""
        if not isinstance(node, yaml.SequenceNode):
            raise self.wrong(node, f"{name} is not a list")
        found = []
        for each in node.value:
            value = self.value(each)
            if not isinstance(value, dict):
                raise self.wrong(each, f"an entry of {name} is not a mapping")
            for field in needed:
                if not isinstance(value.get(field), str) or not value[field]:
                    raise self.wrong(each, f"an entry of {name} has no {field}")
            found.append(value)
        return tuple(found)


def _volumes(reader: Reader, node: yaml.Node) -> tuple[Manifest, ...]:
    found = reader.objects(node, "volumes", ("name",))
    for volume, at in zip(found, node.value, strict=True):
        kinds = [kind for kind in volume if kind != "name"]
        if len(kinds) != 1 or not isinstance(volume[kinds[0]], Mapping):
            raise reader.wrong(at, f"volume {volume['name']} has one kind (persistentVolumeClaim, nfs, hostPath ...)")
        if str(volume["name"]).startswith(OURS):
            raise reader.wrong(at, f"names of volumes do not begin with {OURS}")
    _once(reader, node, [str(volume["name"]) for volume in found], "volume")
    return found


def _mounts(reader: Reader, node: yaml.Node) -> tuple[Manifest, ...]:
    found = reader.objects(node, "volumeMounts", ("name", "mountPath"))
    for mount, at in zip(found, node.value, strict=True):
        path = str(mount["mountPath"])
        if not path.startswith("/") or path.rstrip("/") in ("", "/dev/shm", f"/opt/{OURS}"):
            raise reader.wrong(at, f"nothing can be mounted on '{path}'")
    _once(reader, node, [str(mount["mountPath"]).rstrip("/") for mount in found], "mountPath")
    return found


def _env(reader: Reader, node: yaml.Node) -> tuple[Manifest, ...]:
    found = reader.objects(node, "env", ("name",))
    for variable, at in zip(found, node.value, strict=True):
        if not _VARIABLE.fullmatch(str(variable["name"])):
            raise reader.wrong(at, f"'{variable['name']}' is no name of a variable")
        if "value" in variable and not isinstance(variable["value"], str):
            raise reader.wrong(at, f"the value of {variable['name']} is a text: write it in quotes")
    _once(reader, node, [str(variable["name"]) for variable in found], "variable")
    return found


def _once(reader: Reader, node: yaml.Node, names: Sequence[str], what: str) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise reader.wrong(node.value[place], f"{what} {name} is there twice")


def _secrets(reader: Reader, node: yaml.Node) -> tuple[str, ...]:
    return tuple(str(each["name"]) for each in reader.objects(node, "imagePullSecrets", ("name",)))


def _resources(reader: Reader, node: yaml.Node) -> tuple[tuple[str, str], ...]:
    found = reader.texts(node, "resources")
    for (name, amount), (key, value) in zip(found, reader.entries(node, "resources"), strict=True):
        if name in ("requests", "limits", "cpu", "memory"):
            raise reader.wrong(key, f"resources has no '{name}': CPUs and memory are a job's; others are NAME: AMOUNT")
        if not _QUANTITY.fullmatch(amount):
            raise reader.wrong(value, f"'{amount}' of {name} is no amount")
    return found


def _context(reader: Reader, node: yaml.Node) -> Manifest:
    for key, _ in reader.entries(node, "securityContext"):
        if key.value in OF_THE_SUBMITTER:
            raise reader.wrong(key, f"securityContext has no '{key.value}': pods run as who submitted the job")
        if key.value not in CONTEXT:
            raise reader.wrong(key, f"securityContext has no field '{key.value}'; fields are {', '.join(CONTEXT)}")
    found = reader.value(node)
    assert isinstance(found, dict)
    return found


def _way(reader: Reader, node: yaml.Node) -> str:
    found = reader.text(node, "supervisor")
    if found not in WAYS:
        raise reader.wrong(node, f"supervisor is {', '.join(WAYS[:-1])} or {WAYS[-1]}, not '{found}'")
    return found


def _sharing(reader: Reader, node: yaml.Node) -> str:
    found = reader.text(node, "gpuSharing")
    if found not in SHARINGS:
        raise reader.wrong(node, f"gpuSharing is {', '.join(SHARINGS[:-1])} or {SHARINGS[-1]}, not '{found}'")
    return found


def _text(name: str) -> Callable[[Reader, yaml.Node], str]:
    return lambda reader, node: reader.text(node, name)


FIELDS: Final[Mapping[str, tuple[str, Callable[[Reader, yaml.Node], object]]]] = {
    "env": ("env", _env),
    "gpuSharing": ("gpu_sharing", _sharing),
    "hostNetwork": ("host_network", lambda reader, node: reader.truth(node, "hostNetwork")),
    "hostSoftware": ("host_software", lambda reader, node: reader.truth(node, "hostSoftware")),
    "image": ("image", _text("image")),
    "imagePullSecrets": ("image_pull_secrets", _secrets),
    "nodeSelector": ("node_selector", lambda reader, node: reader.texts(node, "nodeSelector")),
    "priorityClassName": ("priority_class_name", _text("priorityClassName")),
    "resources": ("resources", _resources),
    "runtimeClassName": ("runtime_class_name", _text("runtimeClassName")),
    "securityContext": ("security_context", _context),
    "shmMiB": ("shm_mib", lambda reader, node: reader.whole(node, "shmMiB")),
    "supervisor": ("supervisor", _way),
    "supervisorImage": ("supervisor_image", _text("supervisorImage")),
    "supervisorPath": ("supervisor_path", _text("supervisorPath")),
    "tolerations": ("tolerations", lambda reader, node: reader.objects(node, "tolerations", ())),
    "volumeMounts": ("volume_mounts", _mounts),
    "volumes": ("volumes", _volumes),
}
"""Field of the file -> field of the template, and how it is read."""


def read_template(fields: yaml.Node | None, file: str, what: str, base: PodTemplate = PodTemplate()) -> PodTemplate:
    """What is written, over `base` (for a partition: the defaults); a field that is given replaces the base's whole.

    Fields that are not of pods are passed over: `site_file` knows all names. ConfigError: a value of another kind, a mount
    without its volume.
    """
    reader = Reader(file, what)
    changed: dict[str, object] = {}
    places: dict[str, yaml.Node] = {}
    if isinstance(fields, yaml.MappingNode):
        for key, value in reader.entries(fields, what):
            if key.value in FIELDS:
                name, read = FIELDS[key.value]
                changed[name] = read(reader, value)
                places[name] = value
    template = replace(base, **changed)
    known = {volume["name"] for volume in template.volumes}
    for mount in template.volume_mounts:
        if mount["name"] not in known:
            at = places.get("volume_mounts") or places.get("volumes") or fields
            assert at is not None
            raise reader.wrong(at, f"{mount['mountPath']} is mounted from a volume '{mount['name']}' that is not there")
    return template


def read_templates(text: str, file: str) -> tuple[PodTemplate, dict[str, PodTemplate]]:
    """`defaults`, and each partition of a file that is YAML."""
    return templates_of(yaml.compose(text, Loader=yaml.SafeLoader), file)


def templates_of(root: yaml.Node | None, file: str) -> tuple[PodTemplate, dict[str, PodTemplate]]:
    """The same of a file's nodes."""
    sections = {key.value: value for key, value in root.value} if isinstance(root, yaml.MappingNode) else {}
    base = read_template(sections.get("defaults"), file, "defaults")
    partitions = sections.get("partitions")
    named = partitions.value if isinstance(partitions, yaml.MappingNode) else ()
    return base, {str(key.value): read_template(fields, file, f"partition {key.value}", base) for key, fields in named}
