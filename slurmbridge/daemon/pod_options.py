"""What `slurmbridge up --kube` was asked for; names are those of its options."""

from __future__ import annotations

import msgspec


class PodOptions(msgspec.Struct, frozen=True, kw_only=True):
    kubeconfig: str | None = None  # None: the cluster of the pod that we run in, else the user's own file
    namespace: str | None = None  # None: that of the pod, or of the file's context
    listen: str | None = None
    advertise: str | None = None
