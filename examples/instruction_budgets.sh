#!/bin/sh
# What a job of continuous integration does to keep the instructions of a program's spans within their budgets:
#
#   examples/instruction_budgets.sh BUDGETS OUTPUT [BASE.evc] -- PROGRAM [ARGUMENT…]
#
# BUDGETS is the budget file, OUTPUT a directory for what the job keeps. BASE.evc is the capture of the branch into
# which the change will go; with it, the job shows what the change does to each span. The exit code is 18 if a span is
# over its budget, and 16 if events were lost or spans were open, so that nothing can be said. docs/BUDGETS.md explains
# the steps. EVENTRING names the program `eventring`.
#
# BUDGETS must exist. The first time, make it and commit it:
#
#   eventring icount -o first.evc -- PROGRAM && eventring budget update BUDGETS first.evc
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
if [ ! -f "$budgets" ]; then
    echo "$0: there is no budget file $budgets; make it: $eventring icount -o first.evc -- $*" >&2
    echo "    and then: $eventring budget update $budgets first.evc" >&2
    exit 3
fi
if [ -n "$base" ] && [ ! -f "$base" ]; then
    echo "$0: there is no capture $base; leave the argument out if there is no base yet" >&2
    exit 3
fi
mkdir -p "$output"

# 1. Count. The capture is kept: it is the base of later changes, and `eventring export` draws it.
"$eventring" icount --force -o "$output/head.evc" -- "$@" >"$output/icount.txt"

# 2. Show what the change does, span by span. This step never fails the job: the budgets do.
if [ -n "$base" ]; then
    "$eventring" diff "$base" "$output/head.evc" >"$output/diff.txt" ||
        echo "$0: eventring diff $base has failed with exit code $?" >&2
    cat "$output/diff.txt"
fi

# 3. Check. The numbers of all spans are kept for Bencher (https://bencher.dev, `--adapter json`).
status=0
"$eventring" budget check "$budgets" "$output/head.evc" --bmf "$output/bencher.json" || status=$?
if [ "$status" -eq 16 ]; then
    echo "the capture does not hold all instructions, so no budget is kept; docs/BUDGETS.md says what to do" >&2
fi
if [ "$status" -eq 18 ]; then
    echo "if the change is meant to cost this: eventring budget update $budgets $output/head.evc" >&2
fi
exit "$status"
