# Tests nginx with two workers: static files, a proxy, reload under load, reopened logs, graceful stop.
. /scripts/common.sh
watch_memory
mkdir -p /srv/www
head -c 1024 /dev/urandom > /srv/www/1k
head -c 1048576 /dev/urandom > /srv/www/1m
cat > /etc/nginx/nginx.conf <<'C'
user www-data;
worker_processes 2;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log warn;
events { worker_connections 1024; }
http {
	sendfile on;
	tcp_nopush on;
	keepalive_requests 1000000;
	access_log /var/log/nginx/access.log;
	proxy_max_temp_file_size 0;
	upstream back { server 127.0.0.1:8081; keepalive 16; }
	server {
		listen 8080;
		root /srv/www;
		location /proxy/ { proxy_pass http://back/; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
	server { listen 127.0.0.1:8081; root /srv/www; }
}
C
must start nginx
until_true curl -s http://127.0.0.1:8080/1k
for path in 1k 1m proxy/1m; do
	curl -s http://127.0.0.1:8080/$path | cmp - /srv/www/${path#proxy/} || fail "$path differs"
done
figures nginx
http_load "1 KiB, 1 connection" -t 1 -c 1 http://127.0.0.1:8080/1k
http_load "1 KiB, 64 connections" -t 1 -c 64 http://127.0.0.1:8080/1k
http_load "1 MiB, 16 connections" -t 1 -c 16 http://127.0.0.1:8080/1m
http_load "proxy, 1 KiB, 32 connections" -t 1 -c 32 http://127.0.0.1:8080/proxy/1k
http_load "proxy, 1 MiB, 4 connections" -t 1 -c 4 http://127.0.0.1:8080/proxy/1m
ab_load "1 KiB, without keep-alive" -c 16 http://127.0.0.1:8080/1k
figures nginx

# A reload closes idle connections of the old workers. ab counts these as errors only with -k.
ab -q -s 120 -n 300 -c 4 http://127.0.0.1:8080/1k > ab.out 2>&1 &
for i in 1 2 3; do must reload nginx -s reload; sleep 0.3; done
wait %1 || fail "load during the reload: $(cat ab.out)"
grep -q '^Failed requests: *0$' ab.out || fail "load during the reload: $(cat ab.out)"
until_true eval '[ $(pgrep -x nginx | wc -l) = 3 ]'
mv /var/log/nginx/access.log access.old
must reopen nginx -s reopen
until_true test -f /var/log/nginx/access.log
curl -s http://127.0.0.1:8080/1k > /dev/null
until_true test -s /var/log/nginx/access.log
figures nginx
[ "$(descriptors "$(pgrep -f 'worker process' | head -1)")" -lt 20 ] || fail "descriptors of idle workers are left"
must quit nginx -s quit
until_true gone nginx
cat /var/log/nginx/error.log | grep -v 'signal process started' && fail "messages in the log"
figures nginx
echo done
