#!/bin/bash
# Replays recorded answers of a real Slurm on this tree's commands, installed by pip into an environment open to all users.
#
#   integration/replay.sh [--prefix PREFIX] [ARGUMENT of replay.py ...]
#
# ORACLE names the folder with replay.py (default: ../shared/oracle beside the checkout). Root only.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
oracle=${ORACLE:-$root/../shared/oracle}
prefix=/opt/slurmbridge-test
if [[ ${1:-} == --prefix ]]; then
    prefix=$2
    shift 2
fi
[[ $(id -u) == 0 ]] || { echo "replay.sh: must be run by root" >&2; exit 1; }
[[ -e $oracle/replay.py ]] || { echo "replay.sh: no $oracle/replay.py" >&2; exit 1; }
"$root/integration/prefix.sh" "$prefix"
exec /usr/bin/env python3 "$oracle/replay.py" --prefix "$prefix" "$@"
