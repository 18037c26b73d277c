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

# memory: prints how the memory of the machine is used. On Loam, Slab is the heap of the kernel, garbage included, and SUnreclaim is
# the part of the heap that was in use at the last garbage collection.
memory() {
	echo -n "$SECONDS s:"
	awk '/^(MemFree|MemAvailable|Cached|AnonPages|PageTables|Slab|SUnreclaim):/ {printf " %s %.1f MiB,", $1, $2 / 1024}' /proc/meminfo
	echo " $(awk '/^nr_(user|thread)_pages/ {printf "%s %s, ", $1, $2}' /proc/vmstat)$(ls -d /proc/[0-9]* 2> /dev/null | wc -l) processes"
}

# figures NAME: prints the use of memory, and the number of descriptors and the resident memory of the processes called NAME.
figures() {
	local p
	memory
	echo -n "$1:"
	for p in $(pgrep -x "$1"); do
		[ -r /proc/$p/status ] && echo -n " $p: $(ls /proc/$p/fd | wc -l) descriptors, $(awk '/^VmRSS/ {print $2}' /proc/$p/status) KiB;"
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

# watch_memory prints the use of memory every minute. The loop is no job of the script, so that "wait" ignores it.
watch_memory() { (while sleep 60; do memory; done &); }
