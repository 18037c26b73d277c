# Functions of the scripts. The first argument of a script is the seconds that each load lasts.
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root
seconds=$1
cd /tmp
echo

fail() { echo "FAIL $*"; }

# must DESCRIPTION COMMAND: the command has to succeed.
must() { local what=$1; shift; "$@" || fail "$what: status $?"; }

# until_true COMMAND: waits for a minute at most.
until_true() {
	local i
	for i in {1..600}; do "$@" > /dev/null 2>&1 && return; sleep 0.1; done
	fail "timeout: $*"
}
gone() { ! pgrep -x "$1"; }

# figures NAME: free memory, and descriptors and resident memory of the processes with a name.
figures() {
	local p free
	free=$(awk '/^MemFree/ {print $2}' /proc/meminfo)
	echo -n "$SECONDS s: $((free / 1024)) MiB free"
	for p in $(pgrep -x "$1"); do
		[ -r /proc/$p/status ] && echo -n "; $1 $p: $(ls /proc/$p/fd | wc -l) descriptors, $(awk '/^VmRSS/ {print $2}' /proc/$p/status) KiB"
	done
	echo
}
descriptors() { ls "/proc/$1/fd" | wc -l; }

# http_load DESCRIPTION wrk's arguments: fails if an error is reported. A timeout is no error on a busy host before a minute.
http_load() {
	local what=$1 out; shift
	out=$(wrk --timeout 60s -d "$seconds" "$@") || fail "$what: wrk"
	grep -E 'Socket errors|Non-2xx' <<< "$out" && fail "$what: $out"
	echo "$what: $(awk '/requests in/ {print $1 " requests"} /^Requests\/sec/ {print $2 "/s"}' <<< "$out" | tr '\n' ' ')"
}

# ab_load DESCRIPTION ab's arguments: a connection for each request, or with -k fewer.
ab_load() {
	local what=$1 out; shift
	out=$(ab -q -s 120 -t "$seconds" -n 1000000 "$@" 2>&1) || fail "$what: $out"
	# A request that is cut off at the end of the time counts as one of another length, on Linux too.
	grep -E 'Non-2xx' <<< "$out" && fail "$what: $out"
	grep -q 'Exceptions: [1-9]' <<< "$out" && fail "$what: $out"
	echo "$what: $(awk '/^Complete/ {print $3 " requests"} /^Requests per/ {print $4 "/s"}' <<< "$out" | tr '\n' ' ')"
}
