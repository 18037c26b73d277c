# Usage: mix.sh SECONDS. Runs the commands of mix.list, four at a time in a random order, again and again for SECONDS, and
# once at least. It prints the output and the status of each command in the first round. In later rounds they must be the same.
# "mix.sh command N FOLDER" runs line N, and writes both into FOLDER/N.

if [ "$1" = command ]; then
	work=$(mktemp -d)
	cd "$work"
	line=$(sed -n "$2p" /scripts/mix.list)
	timeout 300 bash -c "$line" < /dev/null > "$3/$2.raw" 2>&1
	echo "status $?" >> "$3/$2.raw"
	# bash prints the process ID of a command that a signal has ended.
	sed -E 's/^(.*): line [0-9]+: +[0-9]+ /\1: /' "$3/$2.raw" > "$3/$2"
	rm -rf "$work" "$3/$2.raw"
	exit 0
fi

. /scripts/common.sh
commands=$(wc -l < /scripts/mix.list)
mkdir first later
round() { shuf -i "1-$commands" | xargs -P 4 -I N bash /scripts/mix.sh command N "/tmp/$1"; }

round first
for ((n = 1; n <= commands; n++)); do
	echo "command $n: $(sed -n "${n}p" /scripts/mix.list)"
	cat "first/$n"
done
echo "end of the first round"
watch_memory
rounds=1
reported=$SECONDS
while [ "$SECONDS" -lt "$seconds" ]; do
	round later
	diff -r first later || fail "round $((rounds + 1))"
	rm later/*
	rounds=$((rounds + 1))
	if [ $((SECONDS - reported)) -ge 300 ]; then
		echo "round $rounds; $(memory); $(ls | wc -l) files"
		reported=$SECONDS
	fi
done
echo "$rounds rounds of $commands commands in $SECONDS s"
echo done
