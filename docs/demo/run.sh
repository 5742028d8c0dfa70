#!/bin/bash
# Runs the example scripts beside this file through a daemon of its own, on two virtual nodes with four virtual GPUs each.
#
#   run.sh BIN          BIN holds slurmbridge, sbatch, squeue ...
#
# Exit status 0 only if every job ended as it should. Nothing is left behind.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "$1" && pwd)
place=$(mktemp -d "${TMPDIR:-/tmp}/slurmbridge-demo.XXXXXX")
state=$place/state work=$place/work
mkdir "$work"
unset SLURM_CONF "${!SLURM_JOB@}" "${!SBATCH_@}"
export PATH=$bin:$PATH SLURMBRIDGE_ADDR=unix:$state/socket

clean_up() {
    local status=$?
    trap - EXIT
    if ((status)) && [[ -s $state/daemon.log ]]; then
        echo "the daemon's log:" >&2
        tail -n 40 "$state/daemon.log" >&2
    fi
    slurmbridge down --state "$state" --jobs 2>/dev/null || true
    rm -rf "$place"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

submit() { # NAME WORD...: sbatch, the id kept in id[NAME]
    local name=$1
    shift
    printf '\n$ sbatch %s\n' "$*"
    local answer
    answer=$(sbatch "$@")
    echo "$answer"
    id[$name]=${answer##* }
}

wrong=0
expect() { # NAME STATE EXITCODE [TEXT FILE]
    local got
    got=$(sacct -X -n -P -j "${id[$1]}" -o State,ExitCode | sort -u)
    if [[ $got != "$2|$3" ]]; then
        echo "demo: $1 (job ${id[$1]}) ended as ${got:-nothing}, not as $2|$3" >&2
        wrong=1
    fi
    if [[ $# -gt 3 ]] && ! grep -q -- "$4" $5; then
        echo "demo: $5 lacks: $4" >&2
        wrong=1
    fi
}

declare -A id
cd "$work"
cp "$here"/*.sh .
show slurmbridge up --slurm-conf "$here/slurm.conf" --state "$state" --detach
show sinfo
submit plain plain.sh
submit array array.sh
submit after --dependency=afterok:"${id[array]}" after.sh
submit gang gang.sh
submit half fraction.sh
submit other fraction.sh
submit several fractions.sh
submit fails fails.sh
sleep 0.5 # let the scheduler work, so that some are seen running
show squeue

deadline=$((SECONDS + 120))
while [[ -n $(squeue -h) ]]; do
    if ((SECONDS >= deadline)); then
        squeue >&2
        echo "demo: jobs are still there after 120 s" >&2
        exit 1
    fi
    sleep 0.2
done

show sacct -X -o JobID%-10,JobName,Partition,AllocCPUS,NNodes,AllocTRES%-48,State,ExitCode
for file in *.out; do
    printf '\n==> %s\n' "$file"
    cat "$file"
done
echo
expect plain COMPLETED 0:0 'with 2 CPUs' "plain-${id[plain]}.out"
expect array COMPLETED 0:0 'task 4 of 4: 16' "array-${id[array]}_4.out"
expect after COMPLETED 0:0 'the array has ended: 4' "after-${id[after]}.out"
expect gang COMPLETED 0:0 'rank 3 of 4 on d2' "gang-${id[gang]}.out"
expect half COMPLETED 0:0 'half of device [0-3]$' "fraction-${id[half]}.out"
expect other COMPLETED 0:0 'half of device [0-3]$' "fraction-${id[other]}.out"
expect several COMPLETED 0:0 'devices [0-3],[0-3]$' "fractions-${id[several]}.out"
expect fails FAILED 3:0
((wrong == 0)) && echo "demo: every job ended as it should"
exit "$wrong"
