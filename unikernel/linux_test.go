//go:build !race

package unikernel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Unmodified programs of Debian run in ring 3, with the same output and exit status as on Linux. They use dynamic
// libraries, fork, execve, pipes, signals, wait and files. Each runs on one CPU and on two.
func TestLinuxPrograms(t *testing.T) {
	root := rootWith(t, "/bin/dash", "/bin/bash", "/bin/cat", "/bin/ls", "/bin/sleep", "/bin/sort", "/bin/mkdir", "/bin/ln")
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"/bin/dash", "-c", "echo out; echo err >&2; exit 7"}, 7},
		{[]string{"/bin/dash", "-c", "(exit 3); echo $?; echo x | while read y; do echo got $y; done"}, 0},
		{[]string{"/bin/dash", "-c", "kill -TERM $$"}, 128 + int(syscall.SIGTERM)},
		{[]string{"/bin/dash", "-c", "kill -SEGV $$"}, 128 + int(syscall.SIGSEGV)},
		{[]string{"/bin/bash", "-c", "for i in c a b; do echo $i; done | /bin/sort | /bin/cat; for i in 1 2 3; do /bin/sleep 0.05 & done; wait; echo $?"}, 0},
		{[]string{"/bin/bash", "-c", "trap 'echo trapped' USR1; kill -USR1 $$; echo $?; trap - USR1; (trap '' TERM; kill -TERM $BASHPID; echo ignored)"}, 0},
		{[]string{"/bin/bash", "-c", "/bin/mkdir d; cd d; echo text > f; /bin/ln -s f g; /bin/cat g f; /bin/ls; [ -L g ] && echo link; echo $((3 * 4))"}, 0},
		{[]string{"/bin/bash", "-c", "/bin/cat <(echo substituted); read a b <<< 'here string'; echo $b; exec 5>&1; echo five >&5; exec /bin/cat /none"}, 1},
		{[]string{"/bin/bash", "-c", "{ /bin/sleep 100 & kill -9 $!; wait $!; } 2>f; echo $?; /none; echo $?; /tmp; echo $?"}, 0},
		{[]string{"/bin/bash", "-c", "f() { (( $1 > 0 )) && ( f $(($1 - 1)) ); echo $1; }; f 30"}, 0},
	} {
		for _, cpus := range []string{"1", "2"} {
			cmd := linuxCommand(c.args[0], c.args[1:]...)
			cmd.Env = append(cmd.Env, withFiles+"="+root, machineCPUs+"="+cpus)
			got, _ := cmd.CombinedOutput()
			want := onHost(t, c.args)
			if status := cmd.ProcessState.ExitCode(); status != c.status || string(got) != want {
				t.Errorf("%q on %s CPUs: status %d, want %d:\n%s\nwant\n%s", c.args, cpus, status, c.status, got, want)
			}
		}
	}
}

// onHost runs a program on this host, in an empty folder, and returns its output. It ignores the exit status, because
// here a signal ends the program itself, and on Loam a shell reports it as a number.
func onHost(t *testing.T, args []string) string {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// A program of the host runs with its loader and libraries, and sees no other program of the host. A static program and a
// program in a root archive run as well.
func TestLinuxProgramOfHost(t *testing.T) {
	out, err := linuxCommand("/bin/echo", "hello", "there").CombinedOutput()
	if err != nil || string(out) != "hello there\n" {
		t.Errorf("%v: %s", err, out)
	}
	out, _ = linuxCommand("/bin/dash", "-c", "[ -e /bin/ls ] || [ -e /root/.bashrc ] || echo nothing").CombinedOutput()
	if string(out) != "nothing\n" {
		t.Errorf("%s", out)
	}
	dir := t.TempDir()
	static := onThisHost(t, "child")
	cmd := linuxCommand(static, "exit", "5")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("a static program of Go: %v: %s", cmd.ProcessState, out)
	}
	archive := filepath.Join(dir, "root.tar.gz")
	pack := exec.Command("tar", "-C", rootWith(t, "/bin/echo"), "-czf", archive, ".")
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd = linuxCommand("/bin/echo", "of an archive")
	cmd.Env = append(cmd.Env, withFiles+"="+archive)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "of an archive\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// bomb returns a small archive that decompresses to more than the memory of a machine.
func bomb(t *testing.T) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range 300 {
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	return b.Bytes()
}

// A program that cannot run gets a one-line error with the reason.
func TestLinuxProgramRefused(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	echo, err := os.ReadFile("/bin/echo")
	if err != nil {
		t.Fatal(err)
	}
	small := bytes.Clone(echo)
	small[4] = 1 // ELFCLASS32
	foreign := bytes.Clone(echo)
	foreign[18] = 183 // EM_AARCH64
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	w.WriteHeader(&tar.Header{Name: "file", Size: 100})
	w.Close()
	z.Close()
	for _, c := range []struct{ path, root, want string }{
		{put("32", small), "", "it is a 32-bit program"},
		{put("foreign", foreign), "", "it is for another processor"},
		{put("short", echo[:3000]), "", "headers are damaged"},
		{"/bin/nothing", rootWith(t, "/bin/echo"), "does not exist"},
		{"/bin/echo", "/nothing", "no such file"},
		{"/bin/echo", put("text", []byte("text")), "is no archive"},
		{"/bin/echo", put("bomb.tar.gz", bomb(t)), "larger than the machine's memory"},
	} {
		cmd := linuxCommand(c.path)
		cmd.Env = append(cmd.Env, withFiles+"="+c.root)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) || bytes.Count(out, []byte("\n")) != 1 {
			t.Errorf("%s in %q: %v: %s", c.path, c.root, err, out)
		}
	}
	cmd := linuxCommand("/bin/echo")
	cmd.Env = append(cmd.Env, onMachine+"=") // run as a process instead of a machine
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "use --platform vm") {
		t.Errorf("as a process: %v: %s", err, out)
	}
}

// read, write and mmap see the same bytes of one file, in one process and in two. The result is the same on Linux, and
// on Loam for files in memory, on a disk and in shared folders of the host.
func TestLinuxProgramCoherent(t *testing.T) {
	program := onThisHost(t, "coherent")
	image := filepath.Join(t.TempDir(), "new")
	in := func(folder string, env ...string) *exec.Cmd {
		cmd := linuxCommand(program)
		cmd.Env = append(append(cmd.Env, inFolder+"="+folder), env...)
		return cmd
	}
	folders := withShared + "=" + t.TempDir() + ":" + t.TempDir()
	for name, cmd := range map[string]*exec.Cmd{
		"Linux": exec.Command(program), "memory": linuxCommand(program), "disk": in("/data", withDisks+"="+image+":/data"),
		"folder": in("/shared0", folders), "folder without a cache": in("/shared1", folders),
	} {
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "coherent\n" {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	checkImage(t, image)
}

// Clocks read through the vDSO agree with clocks read by system calls.
func TestLinuxProgramClocks(t *testing.T) {
	out, err := linuxCommand(onThisHost(t, "clocks")).CombinedOutput()
	if err != nil || string(out) != "clocks\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// A script of the host runs with its arguments and its exit status.
func TestLinuxScript(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/usr/bin/env -S sh -e\necho $#: \"$@\"\n[ \"$1\" = one ]\nexit 5\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := linuxCommand(path, "one", "two words")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 5 || string(out) != "2: one two words\n" {
		t.Errorf("%v: %q", err, out)
	}
}
