"""What does each field of a site file mean? The table of the reference; a test proves that it is complete."""

from __future__ import annotations

from typing import Final

import msgspec


class SiteField(msgspec.Struct, frozen=True):
    """`sections`: where it may stand; `shape`: what its value is."""

    sections: tuple[str, ...]
    name: str
    shape: str
    text: str


PARTS: Final = ("defaults", "partitions")


def _pod(name: str, shape: str, text: str) -> SiteField:
    return SiteField(PARTS, name, shape, text)


WORDS: Final = (
    # which nodes, and what is done with them
    _pod("nodeSelector", "labels", "the nodes of a partition whose line in slurm.conf names none (or `ALL`): those with all these labels"),
    _pod("tolerations", "Kubernetes", "taints that its jobs put up with; a node whose taint none of its partitions tolerates is drained"),
    _pod("placement", "`binpack` or `spread`", "fill nodes up, or the emptiest first (`LLN`)"),
    # pods
    _pod("image", "text", "of jobs that name none with `--container-image`"),
    _pod("imagePullSecrets", "Kubernetes", "for that image and those that jobs name"),
    _pod("volumes", "Kubernetes", "homes, scratch, software: what `volumeMounts` mount"),
    _pod("volumeMounts", "Kubernetes", "where jobs have them; mount homes at the path where people log in"),
    _pod("env", "Kubernetes", "variables of the container, below those of the job"),
    _pod("resources", "resource: amount", "added to each pod, as `rdma/ib: 1`; a node without so much of it is not the partition's"),
    _pod("priorityClassName", "text", "of the pods"),
    _pod("runtimeClassName", "text", "of the pods"),
    _pod("securityContext", "Kubernetes", "but for users and groups, which are the submitter's; RDMA needs locked memory: a container runtime on the nodes that allows it (`LimitMEMLOCK=infinity`), and `PropagateResourceLimitsExcept=MEMLOCK` where login hosts allow less"),
    _pod("hostNetwork", "`true` or `false`", "the network of the node"),
    _pod("hostSoftware", "`true` or `false`", "software of the login host is mounted, so its PATH and LD_* mean something in jobs"),
    _pod("shmMiB", "MiB", "size of /dev/shm; without it as much as the job's memory"),
    _pod("supervisor", "`auto`, `image`, `copy` or `hostPath`", "how the supervisor gets into pods"),
    _pod("supervisorImage", "text", "that brings it"),
    _pod("supervisorPath", "path", "on the nodes that has it, with `hostPath`"),
    _pod("gpuSharing", "`none`, `mps` or `hami-core`", "what keeps those that share a GPU to their memory"),
    SiteField(PARTS, "gpuMemoryReserveMiB", "MiB", "what the driver keeps of each GPU; takes effect in `defaults`"),
    SiteField(("defaults",), "gpuMemoryMiB", "type: MiB", "memory of a type of GPU, in place of what is found out"),
    # nodes of a cluster
    SiteField(("nodes",), "features", "list of labels", "whose values are features; `{label: L, feature: F}` gives the feature F where L is not `false`. Without it: instance type, zone and GPU product"),
    SiteField(("nodes",), "topology", "list of labels", "of switches above a node, innermost first: jobs are placed near, as with topology.conf"),
    SiteField(("nodes",), "sockets", "label", "with the number of sockets"),
    SiteField(("nodes",), "threadsPerCore", "label", "with that number; `true` stands for 2"),
    SiteField(("nodes",), "weight", "label", "with a number: nodes with a lower one are filled first (`Weight=`)"),
    SiteField(("nodes",), "domain", "text", "taken off the end of names, so that `n1.example.org` is `n1`"),
    SiteField(("nodes",), "gpuResource", "resource", "by which whole GPUs are asked for, `nvidia.com/gpu` without it"),
    SiteField(("nodes",), "gpuTypes", "product: type", "names of GPU types for products, where the short one that is found out will not do"),
    # pools
    SiteField(("pools",), "nodes", "host list", "the pool's nodes, by name"),
    SiteField(("pools",), "nodeSelector", "labels", "or by labels, where nodes come from a cluster; a node is in the first pool that has it"),
    SiteField(("pools",), "placement", "`binpack` or `spread`", "of jobs on its nodes"),
    SiteField(("pools",), "devicePlacement", "`binpack` or `spread`", "of parts of GPUs on a node's devices"),
    # order
    SiteField(("scheduling",), "order", "`auto`, `plain` or `fair`", "queues take turns where a quota is set (`auto`), never, or always"),
    SiteField(("scheduling",), "backfill", "`priority`, `shortest` or `aged`", "inside a queue that takes turns"),
    SiteField(("scheduling",), "promise", "`turn`, `claim` or `age`", "who is promised the next start: whose turn it is, who waited longest for its limit, or who waited longest"),
    SiteField(("scheduling",), "nodes", "`configured` or `lasting`", "which nodes of equal weight are filled first: in their order, or those that are in use for longest"),
    SiteField(("scheduling",), "promised", "`idle` or `lent`", "what becomes of nodes that are kept for a promised start: nothing, or they are lent to work that may be ended"),
    SiteField(("scheduling",), "history", "number", "how much past use counts when what is idle is shared out"),
)  # fmt: skip
