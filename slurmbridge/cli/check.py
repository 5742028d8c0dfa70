"""`slurmbridge lint` and `slurmbridge check-config`: read scripts and configuration, change nothing."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence

from slurmbridge.errors import ConfigError

CONF_LIMIT = 16 * 1024 * 1024


def lint(scripts: Sequence[str]) -> int:
    """Each directive's end, with its place; 1 when sbatch would refuse a script, 2 when one cannot be read."""
    from slurmbridge.submit.lint import lint_script

    worst = 0
    for name in scripts:
        try:
            with open(name, "rb") as stream:
                data = stream.read()
        except OSError as fault:
            sys.stderr.write(f"slurmbridge: error: {name}: {fault.strerror}\n")
            worst = 2
            continue
        text, code = lint_script(name, data)
        sys.stdout.write(text)
        worst = max(worst, code)
    return worst


def config(file: str | None) -> int:
    """Read FILE as the daemon would; 1 with file, line and reason when it would refuse it."""
    from slurmbridge.lang import slurm_conf

    if not file:
        sys.stderr.write("slurmbridge: error: no file named and SLURM_CONF is not set\n")
        return 2
    file = os.path.abspath(file)
    try:
        files = read_folder(file)
        cluster = slurm_conf.read_cluster(
            files, os.path.basename(file), cpus=os.cpu_count() or 1, memory_mib=memory_mib()
        )
    except OSError as fault:
        sys.stderr.write(f"slurmbridge: error: {fault.filename}: {fault.strerror}\n")
        return 1
    except ConfigError as fault:
        sys.stderr.write(f"slurmbridge: error: {fault}\n")
        return 1
    for item in getattr(cluster, "ignored_keys", ()):
        sys.stdout.write(f"{item}\n")
    sys.stdout.write(f"{file}: {len(cluster.nodes)} nodes, {len(cluster.partitions)} partitions\n")
    return 0


def read_folder(conf: str) -> dict[str, str]:
    """slurm.conf and every .conf and .yaml file beside it, by name."""
    folder = os.path.dirname(conf)
    names = {
        conf,
        *glob.glob(os.path.join(glob.escape(folder), "*.conf")),
        *glob.glob(os.path.join(glob.escape(folder), "*.yaml")),
    }
    files = {}
    for path in sorted(names):
        if path != conf and not os.access(path, os.R_OK):
            continue  # slurmdbd.conf and keys are often closed; what is missed is named by the reader if it is needed
        with open(path, errors="surrogateescape") as stream:
            files[os.path.basename(path)] = stream.read(CONF_LIMIT)
    return files


def memory_mib() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1 << 20)
