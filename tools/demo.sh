#!/bin/sh
# The main job in four steps. Expected exit codes are checked, so that a broken demo fails.
tilewright=$1
folder=
[ -n "$TILEWRIGHT_LEDGER" ] || { folder=$(mktemp -d); TILEWRIGHT_LEDGER=$folder/ledger.sqlite; }
trap '[ -z "$folder" ] || rm -rf "$folder"' EXIT INT TERM
export TILEWRIGHT_LEDGER
cd "$(dirname "$0")/.." || exit 2

expect() {  # expect CODE COMMAND...
	want=$1; shift
	printf '\n$ tilewright %s\n\n' "$*"
	"$tilewright" "$@"
	got=$?
	[ "$got" = "$want" ] || { printf 'demo: exit code %s, expected %s\n' "$got" "$want"; exit 1; }
}

printf '1. A softmax that passes allclose on the shape of its benchmark, and is wrong:\n'
expect 1 check examples/01_softmax/problem.py examples/01_softmax/wrong.py
printf '\n2. A right one:\n'
expect 0 check examples/01_softmax/problem.py examples/01_softmax/right.py
printf '\n3. Many at once:\n'
expect 1 audit examples --jobs 2
printf '\n4. Make one faster: every version proved, the gain measured on hidden workloads, with a report:\n'
expect 0 search examples/07_search_rowsum/problem.py examples/07_search_rowsum/kernel.c --budget 40s --gate-seconds 3 \
	--html "${TMPDIR:-/tmp}/tilewright-search.html"
