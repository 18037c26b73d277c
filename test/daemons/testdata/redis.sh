# Tests redis: both kinds of persistence, child processes that save under load, latency, and the recovery of all keys after SIGKILL and after a shutdown.
. /scripts/common.sh
watch_memory
mkdir -p /srv/redis
start() {
	redis-server --dir /srv/redis --appendonly yes --save '5 100' --daemonize yes --logfile /srv/redis/log --pidfile /srv/redis/pid \
		--enable-debug-command local > /dev/null || fail start
	until_true eval 'redis-cli ping | grep -q PONG'
}
# save saves in the server itself. redis refuses this while a child process saves, and on a slow machine it may start such a
# child at any time, because of the rule of --save.
save() {
	local answer
	while answer=$(redis-cli save); [[ $answer == *'already in progress'* ]]; do sleep 0.1; done
	[ "$answer" = OK ] || fail "save: $answer"
}
start
figures redis-server
before=$(descriptors "$(cat /srv/redis/pid)")
end=$((SECONDS + 3 * seconds))
while
	redis-benchmark -q -t set,get,incr,lpush,lpop,sadd,hset,zadd,mset -c 50 -n 500 -r 10000 -d 200 > bench.out 2>&1 &
	redis-cli bgrewriteaof > /dev/null
	until_true eval 'redis-cli info persistence | grep -q aof_rewrite_in_progress:0'
	redis-cli bgsave > /dev/null
	until_true eval 'redis-cli info persistence | grep -q rdb_bgsave_in_progress:0'
	save
	wait %1 || fail "redis-benchmark: $(cat bench.out)"
	grep -iE 'error|warn' bench.out && fail "redis-benchmark: $(cat bench.out)"
	[ $SECONDS -lt $end ]
do [ $((rounds = ${rounds:-0} + 1)) = 1 ] || [ $((rounds % 10)) = 0 ] && figures redis-server; done
tr '\r' '\n' < bench.out | grep 'requests per second'
echo "latency (least, most, mean, count): $(timeout 2 redis-cli --latency --raw)"
redis-cli info persistence | tr -d '\r' | grep -E 'last_.*status:' | grep -v :ok && fail "persistence"
redis-cli info stats | tr -d '\r' | grep -E 'total_forks|total_commands'
figures redis-server
until_true eval "[ \$(descriptors $(cat /srv/redis/pid)) -le $((before + 1)) ]"
size=$(redis-cli dbsize) digest=$(redis-cli debug digest)
kill -KILL "$(cat /srv/redis/pid)"
until_true gone redis-server
start
[ "$(redis-cli dbsize) $(redis-cli debug digest)" = "$size $digest" ] || fail "keys after SIGKILL: $(redis-cli dbsize), not $size"
redis-cli shutdown
until_true gone redis-server
redis-check-aof /srv/redis/appendonlydir/appendonly.aof.manifest | grep -q 'All AOF files and manifest are valid' || fail "append-only file"
redis-check-rdb /srv/redis/dump.rdb | grep -q 'RDB looks OK' || fail "RDB file"
echo "$size keys"
echo done
