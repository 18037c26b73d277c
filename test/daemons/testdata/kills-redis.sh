# redis for the test that kills machines: a client increments a counter, and each change is synced to an append-only file. The
# file is rewritten often.
. /scripts/common.sh
mkdir -p /srv/redis
redis-server --dir /srv/redis --appendonly yes --appendfsync always --save '' --auto-aof-rewrite-min-size 4kb --daemonize yes \
	--logfile /srv/redis/log --pidfile /srv/redis/pid > /dev/null || fail start
until_true eval 'redis-cli ping | grep -q PONG'
grep -E 'Bad file format|Unexpected end' /srv/redis/log && fail "append-only file"
n=$(redis-cli get n)
echo "state ${n:-0}"
yes 'incr n' | redis-cli
