#!/bin/bash
# Writes requirements.lock: the newest versions that pyproject.toml allows, as a fresh environment resolves them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python3" - pyproject.toml >"$folder/wanted" <<'EOF'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
print("\n".join(project["dependencies"] + project["optional-dependencies"]["dev"]))
EOF
"$folder/bin/pip" install --quiet --disable-pip-version-check --upgrade -r "$folder/wanted"
{
    echo "# Versions that are tested together; written by integration/lock.sh (make lock)."
    "$folder/bin/pip" --disable-pip-version-check freeze --all --exclude pip
} >requirements.lock
