#!/bin/sh
# What a job of continuous integration does to keep the instructions of a program's spans within their budgets:
#
#   examples/instruction_budgets.sh BUDGETS OUTPUT [BASE.evc] -- PROGRAM [ARGUMENT…]
#
# BUDGETS is the budget file, OUTPUT a directory for what the job keeps. BASE.evc is the capture of the branch into
# which the change will go; with it, the job shows what the change does to each span. The exit code is 18 if a span is
# over its budget. docs/BUDGETS.md explains the steps. EVENTRING names the program `eventring`.
set -eu
eventring=${EVENTRING:-eventring}
usage() {
    echo "usage: $0 BUDGETS OUTPUT [BASE.evc] -- PROGRAM [ARGUMENT…]" >&2
    exit 2
}
[ $# -ge 4 ] || usage
budgets=$1 output=$2 base=
shift 2
if [ "$1" != -- ]; then
    base=$1
    shift
fi
[ "$1" = -- ] && shift || usage
mkdir -p "$output"

# 1. Count. The capture is kept: it is the base of later changes, and `eventring export` draws it.
"$eventring" icount --force -o "$output/head.evc" -- "$@" >"$output/icount.txt"

# 2. Show what the change does, span by span. This step never fails the job: the budgets do.
if [ -n "$base" ]; then
    "$eventring" diff "$base" "$output/head.evc" | tee "$output/diff.txt"
fi

# 3. Check. The numbers of all spans are kept for Bencher (https://bencher.dev, `--adapter json`).
status=0
"$eventring" budget check "$budgets" "$output/head.evc" --bmf "$output/bencher.json" || status=$?
if [ "$status" -eq 18 ]; then
    echo "if the change is meant to cost this: eventring budget update $budgets $output/head.evc" >&2
fi
exit "$status"
