#!/bin/bash -p
# Starts the thin client behind every Slurm command without Python's `site` and without another process.
# bash, not sh: dash drops variables whose names are no identifiers, and with them the exported functions (`module`) that
# jobs inherit. -p: no BASH_ENV, no functions imported. Names are long because an exported variable that is assigned here
# would reach the job changed.
__slurmbridge_self=$0
[[ $__slurmbridge_self == */* ]] || __slurmbridge_self=$(type -P -- "$__slurmbridge_self")
while [[ -L $__slurmbridge_self ]]; do
    __slurmbridge_link=$(readlink -- "$__slurmbridge_self")
    [[ $__slurmbridge_link == /* ]] || __slurmbridge_link=${__slurmbridge_self%/*}/$__slurmbridge_link
    __slurmbridge_self=$__slurmbridge_link
done
__slurmbridge_bin=${__slurmbridge_self%/*}
__slurmbridge_python=$__slurmbridge_bin/python3
if [[ ! -x $__slurmbridge_python ]]; then # no virtual environment: the interpreter that pip wrote into the entry point
    { read -r __slurmbridge_python && [[ $__slurmbridge_python != '#!/bin/sh' ]] || read -r __slurmbridge_python; } \
        < "$__slurmbridge_bin/slurmbridge"
    __slurmbridge_python=${__slurmbridge_python#\#!}
    __slurmbridge_python=${__slurmbridge_python#\'\'\'exec\' }
    __slurmbridge_python=${__slurmbridge_python%% \"\$0\"*}
    __slurmbridge_python=${__slurmbridge_python//\"/}
fi
for __slurmbridge_thin in "$__slurmbridge_bin"/../lib/python3.*/site-packages/slurmbridge/cli/thin; do :; done
if [[ ! -d $__slurmbridge_thin ]]; then # other layouts: Debian's, 64-bit folders
    for __slurmbridge_thin in "$__slurmbridge_bin"/../{lib,local/lib,lib64}/python3{,.*}/{site,dist}-packages/slurmbridge/cli/thin; do
        [[ ! -d $__slurmbridge_thin ]] || break
    done
fi
if [[ -d $__slurmbridge_thin ]]; then
    __slurmbridge_code=${__slurmbridge_thin##*/python3.}
    __slurmbridge_code=$__slurmbridge_thin/__pycache__/client.cpython-3${__slurmbridge_code%%/*}.pyc
    [[ -r $__slurmbridge_code ]] || __slurmbridge_code=$__slurmbridge_thin/client.py
    exec "$__slurmbridge_python" -I -S "$__slurmbridge_code" "${__slurmbridge_self##*/}" "$@"
fi
exec "$__slurmbridge_python" -I -m slurmbridge.cli.thin.client "${__slurmbridge_self##*/}" "$@"
