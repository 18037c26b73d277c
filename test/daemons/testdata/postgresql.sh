# Tests PostgreSQL: initdb, transactions, and the balances after a backend was killed and after a restart.
. /scripts/common.sh
watch_memory
export PATH=/usr/lib/postgresql/15/bin:$PATH

mkdir -p /srv/pg && chown postgres /srv/pg && cd /srv/pg
as() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }
sql() { as psql -h /tmp -Atc "$1" postgres; }

# After each transaction, the sums of all accounts, of all branches and of all recorded changes are equal.
balances() {
	local sums
	sums=$(sql 'select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from pgbench_branches), (select sum(delta) from pgbench_history)')
	[ "$(tr '|' '\n' <<< "$sums" | sort -u | wc -l)" = 1 ] || fail "balances: $sums"
	echo "balances $sums"
}

# bench DESCRIPTION ARGUMENTS: runs pgbench with the arguments. Without -n, pgbench empties pgbench_history first.
bench() {
	local what=$1 out; shift
	out=$(as pgbench -n -h /tmp -T "$seconds" "$@" postgres 2>&1) || fail "$what: $out"
	echo "$what: $(grep -E '^(number of transactions actually|number of failed|tps)' <<< "$out" | tr '\n' ';')"
}

must initdb as initdb -D data -A trust --no-locale -E UTF8 > initdb.log
echo "unix_socket_directories = '/tmp'" >> data/postgresql.conf
must start as pg_ctl -D data -l log -w start > /dev/null
ipcs -m | grep -q postgres || fail "no segment of shared memory"
must tables as pgbench -h /tmp -q -i -s 1 postgres
bench 'one client'
bench '8 clients' -c 8 -j 2
bench '8 clients, TCP, read only' -h 127.0.0.1 -S -c 8 -j 2
balances
figures postgres

# If a backend is killed, the server restarts all other backends and recovers from its log.
as pgbench -n -h /tmp -c 8 -j 2 -T 60 postgres > /tmp/killed 2>&1 &
busy() { [ "$(sql "select count(*) > 4 from pg_stat_activity where backend_type = 'client backend'")" = t ]; }
until_true busy
kill -9 "$(sql "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1")"
wait
grep -q 'Run was aborted' /tmp/killed || fail "the load did not notice: $(tail -3 /tmp/killed)"
until_true sql 'select 1'
balances
bench 'after the recovery' -c 8 -j 2
balances

must stop as pg_ctl -D data -m fast -w stop > /dev/null
until_true gone postgres
ipcs -m | grep -q postgres && fail "the segment of shared memory is left"
must start as pg_ctl -D data -l log -w start > /dev/null
balances
must stop as pg_ctl -D data -m fast -w stop > /dev/null
figures postgres
grep -E 'PANIC|corrupt' log && fail "the log has errors"
echo done
