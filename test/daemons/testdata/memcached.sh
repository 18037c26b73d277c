# Tests memcached with four threads: sixteen clients compare the values that they read with the values that they wrote.
. /scripts/common.sh
watch_memory
memcached -u nobody -m 64 -t 4 -d -P /tmp/memcached.pid -l 127.0.0.1
until_true eval 'exec 3<>/dev/tcp/127.0.0.1/11211'
pid=$(cat memcached.pid)
before=$(descriptors "$pid")
figures memcached
must client python3 /scripts/memcached.py "$seconds"
figures memcached
until_true eval "[ \$(descriptors $pid) -le $before ]"
kill "$pid"
until_true gone memcached
echo done
