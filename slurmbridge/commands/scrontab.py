"""scrontab: jobs started by a calendar, where ScronParameters=enable allows them.

Follows scrontab(1). Slurm leaves it off unless the site asks for it, and says so; a site that does is told that jobs by
calendar are not built yet.
"""

from __future__ import annotations

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Command, Print, Site
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", Arg.REQUIRED), Opt("edit", "e"), Opt("help", "", key="help"), Opt("list", "l"),
        Opt("remove", "r"), Opt("user", "u", Arg.REQUIRED), Opt("usage"), Opt("verbose", "v"), Opt("version", "V"),
        Opt("", "i", key="ask"),
    )
)  # fmt: skip
HELP = """Usage: scrontab [-u user] [-e|-l|-r] [file]
  -e              edit the current crontab
  -l              print the current crontab
  -r              delete the current crontab
  -i              ask before deleting it
  -u user         of this user (administrators only)
  -v              verbose
  -V, --version   the version
  --help          this text
  --usage         a short form of this text
"""
USAGE = "Usage: scrontab [-u user] [-elrv] [file]\n"


def main(call: Call, site: Site) -> Command:
    """Exit code 1 but for help and version: there are no such jobs yet."""
    parsed = getopt.parse(OPTIONS, call.argv)
    if not isinstance(parsed, getopt.Parsed):
        yield Print("".join(line + "\n" for line in parsed.lines), 2)
        return parsed.exit_code
    for key, text in (("help", HELP), ("usage", USAGE), ("version", listing.VERSION + "\n")):
        if parsed.has(key):
            yield Print(text)
            return 0
    words = dict(site.config.values).get("ScronParameters", "").lower().split(",")
    if "enable" not in words:
        yield Print("scrontab: fatal: scrontab is disabled on this cluster\n", 2)
        return 1
    yield Print("scrontab: error: not available in this release of slurmbridge: jobs started by a calendar\n", 2)
    return 1
