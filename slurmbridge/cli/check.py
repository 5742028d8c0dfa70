"""`slurmbridge lint` and `slurmbridge check-config`: read scripts and configuration, change nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from slurmbridge.errors import ConfigError


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


def config(file: str | None, site: str | None = None, kube: bool = False) -> int:
    """Read FILE, and a site file, as the daemon would; 1 with file, line and reason when it would refuse one.

    `kube`: as it would with `up --kube`; no cluster is asked."""
    from slurmbridge.commands.check_config import report
    from slurmbridge.daemon import configuration

    if not file and not site:
        sys.stderr.write("slurmbridge: error: no file named and SLURM_CONF is not set\n")
        return 2
    file, site = (os.path.abspath(name) if name else None for name in (file, site))
    try:
        cluster = configuration.read_fleet(file, site) if kube else configuration.read(file, site)
    except ConfigError as fault:
        sys.stderr.write(f"slurmbridge: error: {fault}\n")
        return 1
    sys.stdout.write(report(cluster))
    return 0
