# Tests sshd and ssh: login by key, exit status, files in both directions, a terminal, a forwarded port, and a user who is not allowed to log in.
. /scripts/common.sh
watch_memory
mkdir -p /run/sshd /root/.ssh
chmod 700 /root/.ssh
must useradd useradd -m -s /bin/bash joe
must keygen ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys
install -d -o joe -g joe -m 700 /home/joe/.ssh
install -o joe -g joe -m 600 /root/.ssh/id_ed25519.pub /home/joe/.ssh/authorized_keys
touch /home/joe/.hushlogin
printf 'Host vm\nHostName 127.0.0.1\nPort 2222\nStrictHostKeyChecking no\nLogLevel ERROR\nBatchMode yes\n' > /root/.ssh/config
must sshd /usr/sbin/sshd -p 2222 -E /tmp/sshd.log
until_true test -s /run/sshd.pid
before=$(descriptors "$(cat /run/sshd.pid)")
[ "$(ssh root@vm 'id -u; exit 7'; echo $?)" = "0
7" ] || fail "login of root"
[ "$(ssh joe@vm 'id -un; pwd; tty')" = "joe
/home/joe
not a tty" ] || fail "login of a user"
[ "$(ssh -tt joe@vm 'tty; trap "echo interrupted" INT; stty -echo; echo ready; read a; echo $a' < <(sleep 1; echo word) | tr -d '\r' | tail -1)" = word ] || fail "a terminal"
size=$((seconds * 10))
[ $size -gt 20 ] && size=20 # the disk's changes are in memory, and the script copies the file several times
head -c ${size}M /dev/urandom > big
sum=$(sha256sum < big)
must scp scp -q big joe@vm:sent
[ "$(sha256sum < /home/joe/sent)" = "$sum" ] || fail "scp to"
must scp scp -q joe@vm:sent received
[ "$(sha256sum < received)" = "$sum" ] || fail "scp from"
echo 'get sent got
put got put' | sftp -q -b - joe@vm > /dev/null || fail sftp
[ "$(cat got /home/joe/put | sha256sum)" = "$(cat big big | sha256sum)" ] || fail "sftp"
[ "$(ssh joe@vm cat sent | sha256sum)" = "$sum" ] || fail "ssh cat"
[ "$(ssh joe@vm sha256sum < big)" = "$sum" ] || fail "cat ssh"
figures sshd
end=$((SECONDS + seconds)) logins=0
while
	jobs=()
	for i in 1 2 3 4; do
		ssh joe@vm "echo $i" > login.$i &
		jobs+=($!)
	done
	wait "${jobs[@]}" || fail "logins at once"
	[ "$(cat login.[1-4] | tr -d '\n')" = 1234 ] || fail "logins at once"
	logins=$((logins + 4))
	[ $SECONDS -lt $end ]
do :; done
echo "$logins logins"
ssh nobody@vm id 2> /dev/null && fail "a user without a key"
ssh -f -N -L 9999:127.0.0.1:2222 joe@vm
exec 3<>/dev/tcp/127.0.0.1/9999
read -r -t 60 line <&3
[[ $line == SSH-2.0-* ]] || fail "a forwarded port: $line"
exec 3<&-
pkill -f 9999:127.0.0.1
until_true eval "[ \$(descriptors $(cat /run/sshd.pid)) -le $before ]"
figures sshd
kill "$(cat /run/sshd.pid)"
until_true gone sshd
grep -iE 'error|fatal' sshd.log | grep -v syslogin_perform_logout && fail "messages in the log"
echo done
