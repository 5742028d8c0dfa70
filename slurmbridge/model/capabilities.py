"""What can the place where jobs run do that not every such place can?

A runtime says it (`runtime.protocol.Runtime.capabilities`); submission and displays read it. The defaults are what virtual
nodes can. An option that needs one of the fields names it (`submit.option.Option.needs`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from slurmbridge.model.pods import PodTemplate


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Only data; a new ability is a field whose default is that there is none."""

    containers: bool = False  # a job may name its image and what is mounted into it
    templates: Mapping[str, PodTemplate] = {}  # what pods of a partition are like
    base: PodTemplate = PodTemplate()  # those of partitions that say nothing

    def template(self, partition: str) -> PodTemplate:
        return self.templates.get(partition, self.base)


VIRTUAL_NODES = Capabilities()
