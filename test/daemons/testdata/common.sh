# Functions that the test scripts of this folder share. The first argument of each script is the duration of a load in seconds.
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root
seconds=$1
cd /tmp
echo

fail() { echo "FAIL $*"; }

# must DESCRIPTION COMMAND: runs the command, and fails the test if the command fails.
must() { local what=$1; shift; "$@" || fail "$what: status $?"; }

# until_true COMMAND: repeats the command until it succeeds, for a minute at most.
until_true() {
	local i
	for i in {1..600}; do "$@" > /dev/null 2>&1 && return; sleep 0.1; done
	fail "timeout: $*"
}
gone() { ! pgrep -x "$1"; }

# figures NAME: prints the free memory of the machine, and the number of descriptors and the resident memory of the processes called NAME.
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

# http_load DESCRIPTION ARGUMENTS: runs wrk with the arguments, and fails the test if wrk reports an error. The timeout is a minute, because the host may be busy.
http_load() {
	local what=$1 out; shift
	out=$(wrk --timeout 60s -d "$seconds" "$@") || fail "$what: wrk"
	grep -E 'Socket errors|Non-2xx' <<< "$out" && fail "$what: $out"
	echo "$what: $(awk '/requests in/ {print $1 " requests"} /^Requests\/sec/ {print $2 "/s"}' <<< "$out" | tr '\n' ' ')"
}

# ab_load DESCRIPTION ARGUMENTS: runs ab with the arguments. It opens a connection for each request, or fewer with -k.
ab_load() {
	local what=$1 out; shift
	out=$(ab -q -s 120 -t "$seconds" -n 1000000 "$@" 2>&1) || fail "$what: $out"
	# A request that is cut off at the end of the time counts as one of another length, on Linux too.
	grep -E 'Non-2xx' <<< "$out" && fail "$what: $out"
	grep -q 'Exceptions: [1-9]' <<< "$out" && fail "$what: $out"
	echo "$what: $(awk '/^Complete/ {print $3 " requests"} /^Requests per/ {print $4 "/s"}' <<< "$out" | tr '\n' ' ')"
}
