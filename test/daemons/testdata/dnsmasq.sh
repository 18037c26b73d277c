# Tests dnsmasq: names from a file and from options, and reverse lookups, by UDP and TCP, under load from dig.
. /scripts/common.sh
watch_memory
printf '10.1.2.3 a.example\nfd00::1 a.example\n' > hosts
dnsmasq --user=root --no-resolv --no-hosts --addn-hosts=/tmp/hosts --listen-address=127.0.0.1 --bind-interfaces --port=5353 \
	--pid-file=/tmp/dnsmasq.pid --log-facility=/tmp/dnsmasq.log --address=/wild.example/10.9.9.9 --txt-record=t.example,hello || fail start
pid=$(cat dnsmasq.pid)
ask() { dig +short -p 5353 @127.0.0.1 "$@"; }
for tcp in +notcp +tcp; do
	[ "$(ask $tcp a.example A; ask $tcp a.example AAAA; ask $tcp x.wild.example A; ask $tcp t.example TXT; ask $tcp -x 10.1.2.3)" = \
		"10.1.2.3
fd00::1
10.9.9.9
\"hello\"
a.example." ] || fail "answers with $tcp"
done
before=$(descriptors "$pid")
figures dnsmasq
end=$((SECONDS + seconds)) queries=0
while
	jobs=()
	for i in 1 2 3 4; do
		for name in {1..50}; do echo "$queries-$name.wild.example A"; done > names.$i
		dig +short -p 5353 @127.0.0.1 -f names.$i > answers.$i &
		jobs+=($!)
	done
	wait "${jobs[@]}" || fail dig
	for i in 1 2 3 4; do [ "$(grep -c '^10.9.9.9$' answers.$i)" = 50 ] || fail "answers: $(sort answers.$i | uniq -c)"; done
	queries=$((queries + 200))
	[ $SECONDS -lt $end ]
do :; done
echo "$queries queries"
figures dnsmasq
[ "$(descriptors "$pid")" -le "$before" ] || fail descriptors
kill -HUP "$pid"
[ "$(ask a.example A)" = 10.1.2.3 ] || fail "after SIGHUP"
kill "$pid"
until_true gone dnsmasq
echo done
