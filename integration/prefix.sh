#!/bin/bash
# Makes FOLDER a virtual environment with the locked dependencies and this tree's slurmbridge; quick when nothing changed.
#
#   integration/prefix.sh FOLDER          (default: .venv)
#
# PYTHON names the interpreter; without it the system's own is preferred, since a test by several users must be able to
# start it (one below a closed home cannot be).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
folder=${1:-.venv}

fits() { "$1" -I -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local name path
    for name in ${PYTHON:-/usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11}; do
        path=$(command -v "$name" || true)
        if [[ -n $path ]] && fits "$path"; then
            echo "$path"
            return
        fi
    done
    echo "prefix.sh: Python 3.11 or later with venv and ensurepip is needed (Debian: python3-venv)" >&2
    return 1
}

exec 9<"$root"
flock 9 # one build at a time: setuptools builds inside the tree
umask 022
if [[ ! -x $folder/bin/python3 ]] || ! "$folder/bin/python3" -I -c pass 2>/dev/null; then
    rm -rf "$folder"
    python=$(find_python)
    "$python" -m venv "$folder"
fi
pip=("$folder/bin/python3" -I -m pip --disable-pip-version-check)
if ! cmp -s requirements.lock "$folder/requirements.lock"; then
    "${pip[@]}" install --quiet --requirement requirements.lock
    cp requirements.lock "$folder/requirements.lock"
    rm -f "$folder/installed"
fi
# What the tree holds, by content: another checkout may have filled the folder since, or a file may be older than that.
wanted=$(find slurmbridge grammar share setup.py pyproject.toml -type f ! -path '*/__pycache__/*' -print0 | LC_ALL=C sort -z |
    xargs -0 sha256sum | sha256sum)
if [[ ! -e $folder/installed || $wanted != "$(<"$folder/installed")" ]]; then
    rm -rf build slurmbridge.egg-info "$folder/installed"
    status=0
    "${pip[@]}" install --quiet --no-deps --no-build-isolation --force-reinstall . || status=$?
    rm -rf build slurmbridge.egg-info
    ((status == 0)) && printf '%s\n' "$wanted" >"$folder/installed" # what was edited during the build differs next time
    exit "$status"
fi
