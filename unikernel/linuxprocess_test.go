//go:build !race

package unikernel

import (
	"strings"
	"testing"
)

// processTools are programs of Debian that inspect and change processes.
var processTools = []string{
	"/bin/bash", "/bin/cat", "/bin/ls", "/bin/sleep", "/usr/bin/ps", "/usr/bin/pgrep", "/usr/bin/free",
	"/usr/bin/lsof", "/usr/bin/id", "/usr/bin/nice", "/usr/bin/prlimit", "/usr/bin/taskset", "/usr/bin/chrt",
	"/usr/bin/setpriv", "/usr/bin/readlink", "/usr/bin/kill",
}

// Programs that inspect and change processes print the same as on Linux: ps, pgrep, nice, prlimit, taskset, chrt, /proc, limits
// and exit statuses.
func TestLinuxProcessTools(t *testing.T) {
	root := rootWith(t, processTools...)
	const path = "PATH=/usr/bin:/bin; "
	for _, script := range []string{
		`sleep 9 & p=$!; ps -o comm=,ni=,nlwp= -p $p; pgrep -P $$ sleep | { read q; [ $q = $p ] && echo found; }; kill $p; wait $p; echo $?`,
		`(exec -a other sleep 9) & p=$!; sleep 0.1; q=$(pgrep -P $$ -f other); read -d '' x < /proc/$q/cmdline; echo $x; cat /proc/$q/comm; kill $q; wait`,
		`nice -n 5 nice; nice -n 3 ps -o ni= -C ps`,
		`prlimit --pid $$ --nofile=64:128; prlimit --pid $$ --nofile --noheadings -o SOFT,HARD; ulimit -n; ulimit -Hn`,
		`taskset -cp 0 $$ > /dev/null; x=$(taskset -cp $$); echo ${x##*: }; read -a s < /proc/$$/stat; echo ${#s[*]}`,
		`x=$(chrt -p $$); echo ${x##*: }; chrt -m | cat`,
		`{ (ulimit -f 1; printf %3000s > big); echo $?; } 2>/dev/null; ls -l big | { read a b c d size rest; echo $size; }`,
		`readlink /proc/self/exe; cat /proc/self/comm; cd /proc/self/fd; echo [012]; readlink /proc/$$/fd/9 || echo none; exec 9< /usr/bin/ps; readlink /proc/$$/fd/9`,
		`{ kill -STOP $BASHPID & sleep 0.2; ps -o stat= -p $! | { read s; echo ${s:0:1}; }; kill -KILL $!; wait $!; echo $?; } 2>/dev/null`,
		`echo 500 > /proc/self/oom_score_adj; cat /proc/$$/oom_score_adj; echo x > /proc/self/oom_score_adj || echo refused`,
		`[ -d /proc/1 ] && [ -r /proc/stat ] && [ ! -e /proc/99999999 ] && echo there; ls /proc/self/task | { read a; [ $a -gt 0 ] && echo one; }`,
	} {
		args := []string{"/bin/bash", "-c", path + script}
		cmd := linuxCommand(args[0], args[1:]...)
		cmd.Env = append(cmd.Env, withFiles+"="+root)
		got, _ := cmd.CombinedOutput()
		if want := onHost(t, args); string(got) != want {
			t.Errorf("%s:\n%s\nwant\n%s", script, got, want)
		}
	}
}

// A file that was opened or executed through a link in /proc has the path to which the link leads.
func TestLinuxPathsBehindProc(t *testing.T) {
	const script = `PATH=/usr/bin:/bin; exec 9< /usr/bin/ps; exec 8< /proc/self/fd/9; readlink /proc/$$/fd/8
/proc/self/exe -c 'x=$(readlink /proc/$$/exe); echo ${x##*/}'`
	args := []string{"/bin/bash", "-c", script}
	cmd := linuxCommand(args[0], args[1:]...)
	cmd.Env = append(cmd.Env, withFiles+"="+rootWith(t, processTools...))
	got, _ := cmd.CombinedOutput()
	if want := onHost(t, args); string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A process of root may change to another user, and then loses its rights on files and processes. A
// program may also start as another user.
func TestLinuxUsers(t *testing.T) {
	root := rootWith(t, processTools...)
	for _, c := range []struct{ user, script, want string }{
		{"", "id; setpriv --reuid=1000 --regid=1001 --clear-groups id", "uid=0 gid=0 groups=0\nuid=1000 gid=1001 groups=1001\n"},
		{"", "umask 077; echo x > /secret; setpriv --reuid=1000 --regid=1000 --clear-groups cat /secret 2>&1", "cat: /secret: Permission denied\n"},
		{"", "sleep 9 & setpriv --reuid=1000 --clear-groups kill $! 2>/dev/null || echo refused; kill $!; wait $!; echo $?", "refused\n143\n"},
		{"", "setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs cat /proc/$$/environ 2>&1", "cat: /proc/2/environ: Permission denied\n"},
		{"1000:1001", "id; ls /proc/self/fd > /dev/null && echo own; ps -o user=,pid= -p $$", "uid=1000 gid=1001 groups=1001\nown\n1000           2\n"},
		{"none", "", "loam: -u none: /etc/passwd has no such user: use a number\n"},
	} {
		cmd := linuxCommand("/bin/bash", "-c", "PATH=/usr/bin:/bin; "+c.script)
		cmd.Env = append(cmd.Env, withFiles+"="+root, asUser+"="+c.user)
		got, _ := cmd.CombinedOutput()
		if string(got) != c.want {
			t.Errorf("%s as %q: %q, want %q", c.script, c.user, got, c.want)
		}
	}
}

// free and lsof find the files that they read. Their figures differ from run to run.
func TestLinuxMonitors(t *testing.T) {
	cmd := linuxCommand("/bin/bash", "-c", "PATH=/usr/bin:/bin; free; lsof -p $$ 2>&1 < /bin/cat")
	cmd.Env = append(cmd.Env, withFiles+"="+rootWith(t, processTools...))
	out, _ := cmd.CombinedOutput()
	for _, want := range []string{"buff/cache", "Swap:", " /bin/bash\n", "libc.so.6\n", " 0r ", " cwd "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
