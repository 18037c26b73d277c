#!/bin/sh
# The script of "make demo". It starts examples/web, an ordinary net/http server,
# on Loam: in a virtual machine if QEMU is installed, and as a process otherwise.
# Then curl fetches pages of the server through a port of this host. PORT selects
# a port other than 8080. With STAY=1 the server runs until Ctrl-C, so that you can
# open it in a browser.
set -eu
cd "$(dirname "$0")/.."
port=${PORT:-8080}
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || { echo "demo: the go command is missing: install Go 1.26 or later from https://go.dev/dl" >&2; exit 2; }
if ! command -v curl >/dev/null; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "demo: curl is missing: install it, and run make demo again" >&2
		exit 2
	fi
	apt-get update -q && apt-get install -q -y --no-install-recommends curl
fi

if ! command -v qemu-system-x86_64 >/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -q && apt-get install -q -y --no-install-recommends qemu-system-x86 || true
	fi
	command -v qemu-system-x86_64 >/dev/null || echo "demo: QEMU is missing, so the server runs as a process and not in a virtual machine: on Debian, apt-get install qemu-system-x86" >&2
fi

work=$(mktemp -d)
server=
end() {
	[ -z "$server" ] || kill -INT "$server" 2>/dev/null || true
	[ -z "$server" ] || wait "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM HUP
trap 'exit 141' PIPE

echo "== building loam"
go build -o "$work/loam" ./cmd/loam
echo "== loam run -p $port:8080 ./examples/web    (the first build of a program takes half a minute)"
"$work/loam" run -p "$port:8080" ./examples/web &
server=$!
until curl -s -o /dev/null "http://127.0.0.1:$port/"; do
	kill -0 "$server" 2>/dev/null || { server=; echo "demo: the server did not start: see its messages above" >&2; exit 1; }
	sleep 0.2
done

echo "== curl http://127.0.0.1:$port/"
curl -s "http://127.0.0.1:$port/" | sed -n 's/.*<title>\(.*\)<\/title>.*/the page: "\1"/p'
echo "== curl http://127.0.0.1:$port/stats    (what the server reports about the system that it runs on)"
curl -s "http://127.0.0.1:$port/stats"
echo "== the round trip, ten requests on one connection, in seconds"
set --
for _ in 1 2 3 4 5 6 7 8 9 10; do
	set -- "$@" -o /dev/null "http://127.0.0.1:$port/stats"
done
curl -s -w '%{time_total}\n' "$@" | sort -n | tr '\n' ' '
echo
echo "== 128 MiB from the server"
curl -s -o /dev/null -w '%{size_download} bytes in %{time_total} s, %{speed_download} bytes a second\n' "http://127.0.0.1:$port/bytes/134217728"
if [ -n "${STAY:-}" ]; then
	echo "== open http://127.0.0.1:$port in a browser; Ctrl-C ends it"
	wait "$server"
fi
echo "== Ctrl-C to the server"
