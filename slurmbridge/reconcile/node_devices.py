"""Which GPUs has a node? Its resources and the labels of GPU Feature Discovery as devices with type and memory.

Source: "GPU Feature Discovery", "MIG Support in Kubernetes" and "GPU sharing" of NVIDIA's documentation. Which real device
one of them is nobody knows before a pod has it: an index is a slot.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from slurmbridge.model.cluster import DEFAULT_DEVICE_MIB, Device, NodeConf
from slurmbridge.model.fleet import NodeRules
from slurmbridge.reconcile.node_sight import SeenNode

SLICE = "nvidia.com/mig-"
LABEL = "nvidia.com/gpu"
_NO_MODEL = re.compile(r"\d+[gt]i?b|sxm\d*|pcie|nvl\d*|hbm\w*|mig|shared|max-?q|ws|\d+g\.\d+gb.*")
_MARQUES = ("nvidia", "tesla", "geforce", "quadro", "titan", "graphics", "device", "grid")
_PROFILE = re.compile(r"-MIG-(?P<profile>\d+g\.\d+gb\S*)$", re.IGNORECASE)


def devices_of(node: SeenNode, rules: NodeRules) -> tuple[Device, ...]:
    """Whole devices first, then slices by size; each kind counted from what the machine has, healthy or not."""
    labels, resources = node.labels, node.capacity.resources
    product = labels.get(f"{LABEL}.product", "")
    slices = sorted(name for name, count in resources.items() if name.startswith(SLICE) and count)
    has_slices = bool(slices) or labels.get("nvidia.com/mig.strategy", "none") not in ("none", "")
    copies = _count(labels.get(f"{LABEL}.replicas", ""))
    kind, memory = type_of(product, rules), _count(labels.get(f"{LABEL}.memory", ""))
    profile = _PROFILE.search(product)
    is_share = copies > 1 or product.endswith("-SHARED")
    if is_share and labels.get(f"{LABEL}.sharing-strategy") == "mps":
        memory //= max(copies, 1)
    if is_share and kind:
        kind = f"{kind}-shared"
    found = [
        Device(type=kind, memory_mib=memory, resource=rules.gpu_resource,
               whole_only=is_share or has_slices or profile is not None)
    ] * resources.get(rules.gpu_resource, 0)  # fmt: skip
    for name in slices:
        size = _count(labels.get(f"{name}.memory", ""))
        found += [Device(type=name.removeprefix(SLICE), memory_mib=size, resource=name)] * resources[name]
    return tuple(replace(_usable(device, rules), index=index) for index, device in enumerate(found))


def _usable(device: Device, rules: NodeRules) -> Device:
    """Its memory as the site says, without what the driver keeps of a whole device."""
    size = dict(rules.gpu_memory).get(device.type) or device.memory_mib
    if rules.gpu_reserve and not device.is_slice:
        size = max((size or DEFAULT_DEVICE_MIB) - rules.gpu_reserve, 1)
    return replace(device, memory_mib=size)


def type_of(product: str, rules: NodeRules) -> str:
    """A short name for a product: NVIDIA-A100-SXM4-80GB is a100, Tesla-T4 t4, NVIDIA-GeForce-RTX-4090 rtx4090.

    Of slices that a node has alone (strategy "single") the profile follows: a100_1g.10gb.
    """
    known = dict(rules.gpu_types).get(product)
    if known is not None:
        return known
    profile = _PROFILE.search(product)
    plain = product[: profile.start()] if profile else product
    words = [word for word in re.split(r"[-_ ]+", plain.lower()) if word and word not in _MARQUES]
    words = [word for word in words if not _NO_MODEL.fullmatch(word)]
    model = next((place for place, word in enumerate(words) if any(map(str.isdecimal, word))), None)
    if model is None:
        name = words[0] if words else ""
    else:
        follows = words[model + 1 : model + 2]
        end = "".join(word for word in follows if word in ("ti", "super"))
        name = (
            ("rtx" if model and words[model - 1] in ("rtx", "gtx") and words[model].isdecimal() else "")
            + words[model]
            + end
        )
    return f"{name}_{profile['profile'].lower()}" if profile and name else name


def shareable(conf: NodeConf) -> int:
    """How many of a node's devices may be given out in parts: each then has a pod that owns it."""
    return sum(1 for device in conf.devices if device.resource and not device.is_slice)


def gres_of(devices: tuple[Device, ...]) -> str:
    """As `Gres=` of slurm.conf would have it."""
    kinds: dict[str, int] = {}
    for device in devices:
        kinds[device.type] = kinds.get(device.type, 0) + 1
    return ",".join(f"gpu:{kind}:{count}" if kind else f"gpu:{count}" for kind, count in kinds.items())


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
