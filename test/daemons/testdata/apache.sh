# Tests Apache with the MPMs event and prefork: static files, keep-alive, graceful restart under load, graceful stop.
. /scripts/common.sh
watch_memory
mkdir -p /var/run/apache2 /var/lock/apache2
head -c 1024 /dev/urandom > /var/www/html/1k
head -c 1048576 /dev/urandom > /var/www/html/1m
echo 'ServerName localhost' >> /etc/apache2/apache2.conf
for mpm in event prefork; do
	a2dismod -q -f mpm_event mpm_prefork > /dev/null
	a2enmod -q mpm_$mpm > /dev/null
	must start apache2ctl -k start
	until_true curl -s http://127.0.0.1/1k
	curl -s http://127.0.0.1/1m | cmp - /var/www/html/1m || fail "1m differs"
	figures apache2
	before=$(descriptors "$(cat /var/run/apache2/apache2.pid)")
	ab_load "$mpm, 1 KiB, without keep-alive" -c 16 http://127.0.0.1/1k
	ab_load "$mpm, 1 KiB, keep-alive" -k -c 32 http://127.0.0.1/1k
	ab_load "$mpm, 1 MiB, keep-alive" -k -c 8 http://127.0.0.1/1m
	ab -q -s 120 -n 100 -c 4 http://127.0.0.1/1k > ab.out 2>&1 &
	must graceful apache2ctl -k graceful
	wait %1 || fail "load during the restart: $(cat ab.out)"
	grep -q '^Failed requests: *0$' ab.out || fail "load during the restart: $(cat ab.out)"
	figures apache2
	[ "$(descriptors "$(cat /var/run/apache2/apache2.pid)")" -le "$before" ] || fail descriptors
	must stop apache2ctl -k graceful-stop
	until_true gone apache2
done
grep -vE ':notice\]' /var/log/apache2/error.log && fail "messages in the log"
echo done
