"""`sacctmgr dump CLUSTER [file=NAME]`: the entities of the cluster as a file on the caller's side, repeated on stderr."""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.commands import dump_file
from slurmbridge.commands.accounting_words import is_word
from slurmbridge.commands.effects import Command, FileData, Print, WriteFile
from slurmbridge.commands.sacctmgr_commit import Context, err, out
from slurmbridge.errors import system_text


def dump(context: Context, argv: Sequence[str], *, quiet: bool) -> Command:
    """The whole verb. A mistaken word is told and fails in the end, the file is written all the same, as in Slurm."""
    if not context.is_operator:
        yield err(" Your user does not have sufficient privileges to dump clusters.")
        return 1
    own = context.site.config.cluster_name
    cluster, name, failed = "", "", False
    for word in argv:
        key, equals, value = word.partition("=")
        if equals and is_word(key, "File", 1):
            name = value.strip("'\"")
        elif not equals or is_word(key, "Cluster", 1) or is_word(key, "Names", 1):
            wanted = (value if equals else word).lower()
            if cluster:
                yield err(f" Can only do one cluster at a time.  Already doing {cluster}")
                failed = True
            elif wanted != own:
                yield err(f" Cluster {wanted} doesn't exist.")
                return 1
            else:
                cluster = wanted
        else:
            yield err(f" Unknown option: {word}")
            failed = True
    if not cluster:
        yield err(" We need a cluster to dump.")
        return 1
    if not name:
        name = f"./{cluster}.cfg"
        yield out(f" No filename given, using {name}.")
    head, lines = dump_file.write(context.site.accounting, cluster)
    text = dump_file.HEAD + "".join(f"{line}\n" for line in [*head, *lines])
    written: FileData = yield WriteFile(name=name, data=text.encode("utf-8", "surrogateescape"))
    if written.errno:
        yield err(f"Can't open file {name}, {system_text(written.errno)}")
        return 1
    if not quiet:
        told = ["\n".join(head), *lines]
        yield Print("".join(f"sacctmgr: {each}\n" for each in told), 2)
    return int(failed)
