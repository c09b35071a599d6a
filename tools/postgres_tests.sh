#!/bin/sh
# Start a PostgreSQL server of our own in a scratch folder, run the ledger's tests on it, stop it.
set -e
python=$1
if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "SKIPPED: PostgreSQL is not installed, and only root can install it (Debian: apt-get install postgresql)"
		exit 0
	fi
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
fi
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
"$python" -c 'import psycopg' 2>/dev/null || "$python" -m pip install --quiet --disable-pip-version-check 'psycopg[binary]>=3.1'
data=$(mktemp -d)
as=''
if [ "$(id -u)" = 0 ]; then
	chown postgres "$data"; chmod 711 "$data"
	as='setpriv --reuid=postgres --regid=postgres --clear-groups'
fi
cleanup() { (cd / && $as "$bin/pg_ctl" -D "$data/db" -m immediate stop >/dev/null 2>&1) || true; rm -rf "$data"; }
trap cleanup EXIT
(cd / && $as "$bin/initdb" -D "$data/db" -A trust -U tilewright --no-sync >/dev/null)
(cd / && $as "$bin/pg_ctl" -D "$data/db" -w -l "$data/db/log" -o "-c listen_addresses='' -k $data/db -c fsync=off" start >/dev/null)
TILEWRIGHT_TEST_POSTGRES="postgresql+psycopg://tilewright@/postgres?host=$data/db" "$python" -m pytest tests/ledger/test_postgres.py
