# PostgreSQL for the test that kills machines: one client inserts rows and reports each commit, and others make transactions that keep the sums of balances equal.
. /scripts/common.sh
export PATH=/usr/lib/postgresql/15/bin:$PATH
mkdir -p /srv/pg && chown postgres /srv/pg && cd /srv/pg
as() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }
sql() { as psql -h /tmp -Atc "$1" postgres; }
start() { as pg_ctl -D data -l log -w -t 300 start > /dev/null || fail "start: $(tail -5 log)"; }
if [ ! -e made ]; then
	rm -rf data
	must initdb as initdb -D data -A trust --no-locale -E UTF8 > initdb.log
	# Small files of the log and frequent checkpoints: the disk is small, and recovery takes little time.
	printf '%s\n' "unix_socket_directories = '/tmp'" 'shared_buffers = 16MB' 'min_wal_size = 32MB' 'max_wal_size = 64MB' \
		'checkpoint_timeout = 30s' >> data/postgresql.conf
	start
	must tables as pgbench -h /tmp -q -i -s 1 postgres 2> /dev/null
	sql 'create table reported(id serial primary key)'
	touch made
	sync
else
	rm -f /tmp/.s.PGSQL* data/postmaster.pid
	start
fi
found=$(sql 'select sum(abalance), (select sum(bbalance) from pgbench_branches), (select coalesce(sum(delta), 0) from pgbench_history),
	(select coalesce(max(id), 0) from reported) from pgbench_accounts')
IFS='|' read -r accounts branches history last <<< "$found"
[ "$accounts" = "$branches" ] && [ "$accounts" = "$history" ] || fail "balances: $found"
errors=$(grep -E 'PANIC|corrupt|invalid page' log | head -3) && [ "$errors" ] && fail "the log has errors:" $errors
echo "state $last"
as pgbench -n -h /tmp -c 2 -j 1 -T 600 postgres > /dev/null 2>&1 &
yes 'insert into reported default values returning id;' | as stdbuf -oL psql -h /tmp -Atq postgres
