package sandbox

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"loam/unikernel/linked"
	"loam/unikernel/seal"
)

// asUser is an environment variable that is set when this test runs again as another user.
const asUser = "LOAM_TEST_SANDBOX_USER"

// build builds the program of testdata.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "view")
	cmd := exec.Command("go", "build", "-o", program, "./testdata/view")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// command returns a run of a program whose output goes to w.
func command(t testing.TB, program string, w *os.File, args ...string) Command {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, err := linked.Places(f, seal.Functions())
	if err != nil {
		t.Fatal(err)
	}
	c := Command{
		Program: program, Args: append([]string{"view"}, args...), Env: []string{"VIEW=seen\xff"},
		Stdout: w, Stderr: w, Calls: seal.Calls, Handed: -1, Group: true,
	}
	for _, p := range found {
		c.Places = append(c.Places, seal.Place(p))
	}
	return c
}

// file returns a file that contains a text, positioned at its start.
func file(t *testing.T, text string) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	return f
}

// A program receives its arguments, environment, streams and files. It can open no file of the host. Wait returns its
// exit status.
func TestRun(t *testing.T) {
	out := file(t, "")
	c := command(t, build(t), out, "one", "two", "exit")
	c.Files = []*os.File{file(t, "inherited")}
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	status, err := p.Wait()
	text, _ := os.ReadFile(out.Name())
	if err != nil || status.ExitStatus() != 7 || !bytes.HasPrefix(text, []byte("one two exit seen\xff inherited <nil> true\n")) {
		t.Errorf("status %v, %v: %q", status, err, text)
	}
	if l := p.Layers(); os.Getuid() == 0 && (l.Why != "" || !l.User || !l.Mount || !l.PID || !l.Network || !l.IPC || !l.Unprivileged) {
		t.Errorf("of the layers there are %+v", l)
	}
}

// start starts a program that waits, and returns when it runs.
func start(t *testing.T) (p *Process, program *bufio.Scanner) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	p, err = Start(command(t, build(t), w, "wait"))
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	program = bufio.NewScanner(r)
	for range 2 {
		if !program.Scan() {
			t.Fatal("the program ends at once")
		}
	}
	return p, program
}

// If a signal ends the program, Wait's status says so.
func TestSignal(t *testing.T) {
	p, _ := start(t)
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(); err != nil || status.Signal() != syscall.SIGKILL {
		t.Errorf("status %v, %v", status, err)
	}
}

// If the stage (the process between the caller and the program) is killed, the program ends too, although the stage
// cannot signal it.
func TestStageIsKilled(t *testing.T) {
	p, program := start(t)
	p.stage.Process.Kill()
	if program.Scan() {
		t.Errorf("the program goes on: %s", program.Text())
	}
	if status, err := p.Wait(); err != nil || status.Signal() != syscall.SIGKILL {
		t.Errorf("status %v, %v", status, err)
	}
}

// Start returns an error for a file that cannot be executed.
func TestNoProgram(t *testing.T) {
	program := build(t)
	c := command(t, program, os.Stderr)
	c.Program = filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(c.Program, []byte("\x7fELF, and no more"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := Start(c)
	if err == nil {
		_, err = p.Wait()
	}
	if !errors.Is(err, syscall.ENOEXEC) {
		t.Errorf("a broken file: %v", err)
	}
	c.Program = filepath.Join(t.TempDir(), "none")
	if _, err := Start(c); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Without root, a program is confined in the same way, as far as the kernel allows it. It runs as the caller's user.
func TestUnprivileged(t *testing.T) {
	if program := os.Getenv(asUser); program != "" {
		p, err := Start(command(t, program, os.Stdout, "exit"))
		if err != nil {
			t.Fatal(err)
		}
		if status, err := p.Wait(); err != nil || status.ExitStatus() != 7 {
			t.Errorf("status %v, %v", status, err)
		}
		return
	}
	dir, err := os.MkdirTemp("", "loam-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, f := range []struct{ from, to string }{{os.Args[0], "test"}, {build(t), "view"}} {
		content, err := os.ReadFile(f.from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f.to), content, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The user may lack permission to search the folders above this one, so names are relative.
	cmd := exec.Command("./test", "-test.run=^TestUnprivileged$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asUser+"=./view", "TMPDIR=.")
	uid := os.Getuid()
	if uid == 0 {
		uid = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), " true\n"+strconv.Itoa(uid)+" true\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// The layers of a started program are those that Probe reports.
func TestProbe(t *testing.T) {
	if l, err := Probe(); err != nil || os.Getuid() == 0 && !l.Mount {
		t.Errorf("%+v, %v", l, err)
	}
}

// BenchmarkStart measures the time from Start to the end of a program that does nothing. For comparison it also
// measures the same program without a sandbox. It reports the CPU time, page faults and voluntary context switches of this
// process and its children, because these figures depend less on the load of the machine than the time.
func BenchmarkStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "view")
	cmd := exec.Command("go", "build", "-o", program, "./testdata/view")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	b.Run("sandbox", func(b *testing.B) {
		c := command(b, program, null, "exit")
		before := used()
		for b.Loop() {
			p, err := Start(c)
			if err != nil {
				b.Fatal(err)
			}
			p.Wait()
		}
		before.report(b)
	})
	b.Run("linux", func(b *testing.B) {
		before := used()
		for b.Loop() {
			exec.Command(program, "exit").Run()
		}
		before.report(b)
	})
}

// usage counts the resources that this process and its children have used.
type usage struct{ cpu, faults, switches int64 }

func used() (u usage) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		syscall.Getrusage(who, &r)
		u.cpu += r.Utime.Nano() + r.Stime.Nano()
		u.faults += r.Minflt
		u.switches += r.Nvcsw
	}
	return u
}

// report reports the use since u for each operation.
func (u usage) report(b *testing.B) {
	now, n := used(), float64(b.N)
	b.ReportMetric(float64(now.cpu-u.cpu)/1e6/n, "cpu-ms/op")
	b.ReportMetric(float64(now.faults-u.faults)/n, "faults/op")
	b.ReportMetric(float64(now.switches-u.switches)/n, "switches/op")
}
