//go:build !race

package unikernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// compiled compiles a C program of testdata/trace into a folder.
func compiled(t *testing.T, dir, name string) string {
	t.Helper()
	source, err := filepath.Abs("testdata/trace")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, name)
	cmd := exec.Command("gcc", "-g", "-O0", "-pthread", "-fdebug-prefix-map="+source+"=.", "-o", program, filepath.Join(source, name+".c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// A tracer sees the same stops, registers, memory and errors as on Linux: ptrace(2), /proc/PID/mem, process_vm_readv(2), on one CPU and two.
func TestLinuxTracer(t *testing.T) { compareC(t, "tracer") }

// Filters of seccomp(2) have the same effects and errors as on Linux.
func TestLinuxFilters(t *testing.T) { compareC(t, "filters") }

// System V's shared memory, semaphores and message queues behave as on Linux.
func TestLinuxSysV(t *testing.T) { compareC(t, "sysv") }

// compareC runs a C program on this host and in a machine, and compares the output. The command that runs the machine has the
// environment variables env in addition.
func compareC(t *testing.T, name string, env ...string) {
	program := compiled(t, t.TempDir(), name)
	want := onHost(t, []string{program})
	if !strings.Contains(want, "\n") {
		t.Fatalf("on this host: %s", want)
	}
	for _, cpus := range []string{"1", "2"} {
		cmd := linuxCommand(program)
		cmd.Env = append(append(cmd.Env, machineCPUs+"="+cpus), env...)
		if got, err := cmd.CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("on %s CPUs: %v\n%s", cpus, err, differing(string(got), want))
		}
	}
}

// differing returns the lines of both texts from the first difference on.
func differing(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	const few = 5
	return fmt.Sprintf("line %d: %q, want %q", i+1, g[i:min(i+few, len(g))], w[i:min(i+few, len(w))])
}

// varying matches what differs from run to run: IDs, addresses, times, and how the output of two threads is interleaved.
var varying = regexp.MustCompile(`LWP \d+|process \d+|0x[0-9a-f]+|\[pid +\d+\]|si_pid=\d+|si_[us]time=\d+( /\* [0-9.]+ s \*/)?|Process \d+`)

// debuggerRoot creates a root folder with Debian's gdb, and a C program in /srv with its source. It returns both folders.
func debuggerRoot(t *testing.T, program string) (root, srv string) {
	root = rootWith(t, "/usr/bin/gdb", "/bin/dash", "/bin/sleep", "/bin/cat")
	srv = filepath.Join(root, "srv")
	if err := os.Mkdir(srv, 0o755); err != nil {
		t.Fatal(err)
	}
	compiled(t, srv, program)
	for _, name := range []string{program + ".c", "commands.gdb"} {
		data, err := os.ReadFile(filepath.Join("testdata/trace", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(srv, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"/lib/x86_64-linux-gnu/libthread_db.so.1", "/lib/x86_64-linux-gnu/libpthread.so.0", "/usr/share/gdb", "/usr/lib/python3.11", "/usr/lib/x86_64-linux-gnu/gconv"} {
		to := filepath.Join(root, filepath.Dir(dir))
		err := os.MkdirAll(to, 0o755)
		if err == nil {
			err = exec.Command("cp", "-rL", dir, to).Run()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root, srv
}

// sameSession runs a script with a debugger in /srv on this host and on Loam, and compares the output, which must contain
// a text.
func sameSession(t *testing.T, root, srv, script, text string) {
	host := exec.Command("/bin/dash", "-c", strings.Replace(script, "/srv", srv, 1))
	out, _ := host.Output()
	plain := func(out []byte) string { // the columns depend on the number of digits of process IDs
		return strings.Join(strings.FieldsFunc(varying.ReplaceAllString(string(out), "N"), func(r rune) bool { return r == ' ' }), " ")
	}
	want := plain(out)
	cmd := linuxCommand("/bin/dash", "-c", script)
	cmd.Env = append(cmd.Env, withFiles+"="+root, onMachine+"=1500")
	out, _ = cmd.Output()
	if got := plain(out); got != want || !strings.Contains(got, text) {
		t.Error(differing(got, want))
	}
}

// Debian's gdb runs a program with threads: breakpoints, steps, a backtrace, watchpoints by the debug registers, a call of a
// function. The output is that of Linux.
func TestLinuxDebugger(t *testing.T) {
	root, srv := debuggerRoot(t, "threads")
	sameSession(t, root, srv, "cd /srv; SHELL=/bin/dash LC_ALL=C.UTF-8 exec gdb -q -nx -batch -x commands.gdb ./threads 2>/dev/null", "Hardware read watchpoint")
}

// Debian's gdb attaches to a running program with threads, changes its variables, and detaches. The program continues.
func TestLinuxDebuggerAttaches(t *testing.T) {
	root, srv := debuggerRoot(t, "attach")
	const script = `cd /srv; ./attach > log & p=$!
until read line < log; do sleep 0.1; done 2>/dev/null
SHELL=/bin/dash LC_ALL=C.UTF-8 gdb -q -nx -batch -iex 'set debug-file-directory /none' -iex 'set print address off' -p $p \
-ex 'thread apply all -s -q frame function work' -ex 'print sum' -ex 'set var sum=100' -ex 'set var go=1' -ex detach > out 2>/dev/null
while read a b; do case "$a$b" in *work*|*\$1*|*Inferior*) echo $b;; esac; done < out
wait $p; echo $?; cat log`
	sameSession(t, root, srv, script, "work (arg=)")
}

// Debian's strace shows the same calls as on Linux, of a program and of its children, and the counts of -c.
func TestLinuxStrace(t *testing.T) {
	root := rootWith(t, "/usr/bin/strace", "/bin/dash", "/bin/cat", "/bin/true", "/bin/sleep", "/usr/bin/env")
	const calls = "-e trace=execve,openat,read,write,close,clone,vfork,wait4,exit_group,kill,dup2,pipe,pipe2"
	for _, args := range []string{
		"-f " + calls + " -o /tmp/out dash -c 'true; echo hi; exit 3'",
		"-ff -o /tmp/out -e trace=write,exit_group dash -c '(echo a); echo b | cat'",
		"-e trace=kill -o /tmp/out dash -c 'trap : USR1; kill -USR1 $$; kill -TERM $$'",
		"-f -e trace=none -o /tmp/out dash -c 'true & wait; sleep 0.01'",
		"-e inject=getppid:retval=7 -e trace=getppid -o /tmp/out dash -c 'echo $PPID'",
	} {
		script := "PATH=/usr/bin:/bin; strace " + args + "; echo $?; cat /tmp/out*"
		dir := t.TempDir()
		host := exec.Command("/bin/dash", "-c", strings.ReplaceAll(script, "/tmp", dir))
		host.Env = []string{"LC_ALL=C"}
		wanted, _ := host.CombinedOutput()
		cmd := linuxCommand("/usr/bin/env", "-i", "LC_ALL=C", "/bin/dash", "-c", script)
		cmd.Env = append(cmd.Env, withFiles+"="+root)
		out, _ := cmd.CombinedOutput()
		got, want := plainTrace(string(out)), plainTrace(strings.ReplaceAll(string(wanted), dir, "/tmp"))
		if got != want {
			t.Errorf("strace %s:\n%s\nwant\n%s\nin full\n%s\nand\n%s", args, got, want, out, wanted)
		}
	}
}

// unfinished matches both parts of a line about a call that strace splits because another thread made a call in
// between; ids matches process IDs.
var (
	unfinished = regexp.MustCompile(`(?m) *<unfinished \.\.\.>.*$|^.*<\.\.\. \w+ resumed>.*\n`)
	loaded     = regexp.MustCompile(`(?m)^.*/(lib|etc)/.*\n|^.*(read|close)\([3-9].*\n`)
	ids        = regexp.MustCompile(`(?m)^\d+ +|\b\d{1,7}\b`)
)

// plainTrace removes text that varies between runs, and the calls of the dynamic loader, which depend on the folder of
// the libraries.
func plainTrace(s string) string {
	s = loaded.ReplaceAllString(s, "")
	s = varying.ReplaceAllString(unfinished.ReplaceAllString(s, ""), "N")
	lines := strings.Split(ids.ReplaceAllString(s, "N"), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	// The order of lines is not compared: two processes run at the same time.
	return strings.Join(slices.Sorted(slices.Values(lines)), "\n")
}
