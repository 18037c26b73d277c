package unikernel

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"loam/internal/race"
	"loam/unikernel/sandbox"
	"loam/unikernel/seal"
)

// Hostile programs (testdata/hostile), one for each technique. There are three groups of tests. First, the attacks do
// harm on Linux: otherwise the other tests would prove nothing. Second, the sandbox alone stops them, without checks of
// the executable. Third, `loam run` rejects or stops them, as a process and in a machine.

const (
	hostileFolder = "/tmp/loam-hostile" // the same path as in testdata/hostile/attack
	hostileSecret = "the secret of the host"
)

// targets are the objects that the hostile programs attack: a process, a file and listeners.
type targets struct {
	victim   *exec.Cmd
	calls    atomic.Int32 // number of accepted connections
	counting sync.Mutex   // held by connections, which connects itself
	port     int
	places   []net.Addr // addresses where connections are accepted
}

// newTargets creates the targets. The victim and the file belong to the user that programs run as here.
func newTargets(t *testing.T) *targets {
	t.Helper()
	g := &targets{}
	if err := os.RemoveAll(hostileFolder); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(hostileFolder, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(hostileFolder) })
	g.reset(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.port = l.Addr().(*net.TCPAddr).Port
	abstract, err := net.Listen("unix", "@loam-hostile")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{l, abstract} {
		g.places = append(g.places, l.Addr())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				g.calls.Add(1)
				c.Close()
			}
		}()
		t.Cleanup(func() { l.Close(); <-done })
	}
	t.Cleanup(func() { g.victim.Process.Kill(); g.victim.Wait() })
	return g
}

// reset recreates the targets that an attack may have changed.
func (g *targets) reset(t *testing.T) {
	t.Helper()
	os.RemoveAll(filepath.Join(hostileFolder, "mark"))
	secret := filepath.Join(hostileFolder, "secret")
	os.Remove(secret)
	if err := os.WriteFile(secret, []byte(hostileSecret), 0o666); err != nil {
		t.Fatal(err)
	}
	os.Chmod(hostileFolder, 0o777) // MkdirAll is subject to the umask
	os.Chmod(secret, 0o666)
	if g.victim != nil {
		g.victim.Process.Kill()
		g.victim.Wait()
	}
	g.victim = exec.Command("sleep", "1000")
	g.victim.Dir = "/"
	g.victim.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := g.victim.Start(); err != nil {
		t.Fatal(err)
	}
	g.calls.Store(0)
}

// environ returns the variables that describe the targets to a program.
func (g *targets) environ() []string {
	return []string{"HOSTILE_PID=" + strconv.Itoa(g.victim.Process.Pid), "HOSTILE_PORT=" + strconv.Itoa(g.port)}
}

// boasts matches lines that a hostile program prints when its attack has succeeded.
var boasts = regexp.MustCompile(hostileSecret + `|is watched|aimed at|is there|of another process|of the host|works|a ring|^ports|can be read`)

// connections returns the number of connections that the attacks have made since reset. It connects itself and waits
// for that connection to be counted: earlier connections have been accepted by then.
func (g *targets) connections() int32 {
	g.counting.Lock()
	defer g.counting.Unlock()
	for _, at := range g.places {
		c, err := net.Dial(at.Network(), at.String())
		if err != nil {
			continue
		}
		c.Read(make([]byte, 1)) // returns when the connection has been counted and closed
		c.Close()
		g.calls.Add(-1)
	}
	return g.calls.Load()
}

// harm describes the damage to the targets, or returns an empty string.
func (g *targets) harm(output []byte) string {
	var all []string
	if names, _ := filepath.Glob(hostileFolder + "/*"); !slices.Equal(names, []string{hostileFolder + "/secret"}) {
		all = append(all, fmt.Sprintf("there are %q", names))
	}
	if b, err := os.ReadFile(hostileFolder + "/secret"); err != nil || string(b) != hostileSecret {
		all = append(all, fmt.Sprintf("the secret is %q, %v", b, err))
	}
	if st, err := os.Stat(hostileFolder + "/secret"); err == nil && st.Mode().Perm() != 0o666 {
		all = append(all, "the secret has mode "+st.Mode().String())
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(g.victim.Process.Pid, &status, syscall.WNOHANG|syscall.WUNTRACED, nil); pid != 0 {
		all = append(all, fmt.Sprintf("the victim: %v, %v", status, err))
	}
	if n := g.connections(); n > 0 {
		all = append(all, fmt.Sprintf("%d connections", n))
	}
	if boast := boasts.Find(output); boast != nil {
		all = append(all, fmt.Sprintf("it prints %q", boast))
	}
	return strings.Join(all, ", ")
}

// hostilePrograms are the programs whose technique is in the executable itself, by folder. The value is
// whether they do harm on Linux.
var hostilePrograms = map[string]bool{
	"cgo-init": true, "cgo-init-linkname": false, "cgo-mmap": true, "cgo-notify-runtime-init-done": false, "cgo-sigaction": true,
	"cgo-thread-start": false, "cgo-yield": true, "dynamic-empty": false, "dynamic-libc": false, "early-package": true,
	"runtime-check": true, "runtime-gate": false, "runtime-rt0": true, "runtime-settls": true, "pretender": true,
}

// hostileHarm lists the techniques of the program "calls" that do harm on Linux, at least as root.
var hostileHarm = []string{"open", "openat", "creat", "int80", "execve", "execveat", "memfd", "fork", "kill", "pidfd", "ptrace", "socket", "unixsocket", "truncate", "sigreturn", "port"}

// buildHostile builds a program for Linux.
func buildHostile(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join("testdata/hostile", name)
	cmd.Env = append(os.Environ(), guestEnv...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return program
}

// techniques returns the techniques that the program "calls" implements.
func techniques(t *testing.T, program string) []string {
	t.Helper()
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// hostileTime bounds a program's run: some never end.
const hostileTime = 20 * time.Second

// onLinux runs a program without confinement, in a process group of its own that is killed afterwards.
func (g *targets) onLinux(program string, args ...string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), hostileTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), g.environ()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = 0
	}
	out, _ := cmd.CombinedOutput()
	return out
}

// The attacks do harm on Linux. Attacks that signal all processes are excluded here, because they would reach the whole
// machine.
func TestHostileOnLinux(t *testing.T) {
	if os.Getuid() != 0 || race.Enabled {
		t.Skip("needs root, and is not about races")
	}
	g := newTargets(t)
	for _, name := range sortedKeys(hostilePrograms) {
		if !hostilePrograms[name] {
			continue
		}
		g.reset(t)
		if out := g.onLinux(buildHostile(t, name)); g.harm(out) == "" {
			t.Errorf("%s does no harm: %s", name, out)
		}
	}
	program := buildHostile(t, "calls")
	for _, name := range hostileHarm {
		if name == "kill" || name == "pidfd" || name == "ptrace" {
			continue // such an attack runs in a PID namespace, which protects the rest of the machine but also the victim
		}
		g.reset(t)
		if out := g.onLinux(program, name); g.harm(out) == "" {
			t.Errorf("%s does no harm: %s", name, out)
		}
	}
}

// sandboxed runs any program in the sandbox, without checking its executable. The victim runs as the
// program's user.
func (g *targets) sandboxed(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	places, err := placesOf(program)
	if err != nil { // the executable lacks the runtime's functions: arbitrary addresses stand for them
		places = nil
		for _, name := range seal.Functions() {
			places = append(places, seal.Place{Name: name, After: 0x402000})
		}
	}
	ended := make(chan []byte)
	go func() {
		var out bytes.Buffer
		out.ReadFrom(r)
		ended <- out.Bytes()
	}()
	done := make(chan error, 1)
	go func() {
		p, err := sandbox.Start(sandbox.Command{
			Program: program, Args: append([]string{program}, args...), Env: g.environ(), Stdout: w, Stderr: w,
			Calls: seal.Calls, Places: places, Handed: -1, Group: true,
		})
		w.Close()
		if err == nil {
			limit := time.AfterFunc(hostileTime, func() { p.Signal(syscall.SIGKILL) })
			_, err = p.Wait()
			limit.Stop()
		}
		done <- err
	}()
	<-done // hostile programs may exit with any status
	return <-ended
}

// The sandbox alone stops every hostile program, without checks of its executable.
func TestHostileInSandbox(t *testing.T) {
	g := newTargets(t)
	program := buildHostile(t, "calls")
	names, all := sortedKeys(hostilePrograms), techniques(t, program)
	if race.Enabled { // the programs are built without the race detector, and package sandbox starts each in the same way
		names, all = names[:1], all[:1]
	}
	for _, name := range names {
		if out := g.sandboxed(t, buildHostile(t, name)); g.harm(out) != "" {
			t.Errorf("%s: %s", name, g.harm(out))
			g.reset(t)
		}
	}
	for _, name := range all {
		if out := g.sandboxed(t, program, name); g.harm(out) != "" {
			t.Errorf("%s: %s", name, g.harm(out))
			g.reset(t)
		}
	}
}

// buildTime bounds the first run of a program, which builds it, and the standard library with it if need be.
const buildTime = 5 * time.Minute

// prepared builds the program "calls" for Loam before it is tested. A run that hits its time limit while it still
// builds would prove nothing.
func (g *targets) prepared(t *testing.T, p Platform) {
	t.Helper()
	if out := g.loamRunFor(t, buildTime, p, "calls"); !bytes.Contains(out, []byte("ptrace\n")) {
		t.Fatalf("the program with all techniques does not run: %s", out)
	}
}

// loamRun runs a program of testdata/hostile on Loam.
func (g *targets) loamRun(t *testing.T, p Platform, name string, args ...string) []byte {
	t.Helper()
	return g.loamRunFor(t, 2*hostileTime, p, name, args...)
}

// loamRunFor is like loamRun, but with the time limit bound.
func (g *targets) loamRunFor(t *testing.T, bound time.Duration, p Platform, name string, args ...string) []byte {
	t.Helper()
	folder, err := filepath.Abs("testdata/hostile/" + name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], append([]string{folder}, args...)...)
	cmd.Env = append(append(os.Environ(), helper+"="+strconv.Itoa(int(UserNetwork))), g.environ()...)
	if p == Machine {
		cmd.Env = append(cmd.Env, onMachine+"=128")
	}
	limit := time.AfterFunc(bound, func() { cmd.Process.Signal(syscall.SIGKILL) })
	defer limit.Stop()
	out, _ := cmd.CombinedOutput()
	return out
}

// A program cannot enlarge the image of its disk, and so cannot fill the host's file system.
func TestHostileDisk(t *testing.T) {
	g := newTargets(t)
	const size = 1 << 20
	for _, p := range []Platform{Process, Machine} {
		images := []string{filepath.Join(t.TempDir(), "one.img"), filepath.Join(t.TempDir(), "two.img")}
		for _, image := range images {
			if err := os.WriteFile(image, make([]byte, size), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv(withDisks, strings.Join(images, "\n"))
		g.prepared(t, p)
		out := g.loamRun(t, p, "calls", "disk")
		if !bytes.Contains(out, []byte("all was tried")) {
			t.Errorf("%v: the program did not come to its end: %s", p, out)
		}
		for _, image := range images {
			if st, err := os.Stat(image); err != nil || st.Size() != size {
				t.Errorf("%v: the image has %d bytes, not %d: %v: %s", p, st.Size(), size, err, out)
			}
		}
	}
}

// A program that overwrites the memory that it shares with the server of its folder only loses its connection. The
// server ends with a message, not by a fault.
func TestHostileFolderMemory(t *testing.T) {
	g := newTargets(t)
	dir := hostFolders(t, 1)[0]
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("content"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv(withShared, dir)
	g.prepared(t, Process)
	out := g.loamRun(t, Process, "calls", "foldermemory")
	for text, want := range map[string]bool{
		"all was tried": true, "memory was mapped": true, "mapped for execution": false, "panic": false, "fatal error": false, "unexpected fault": false,
	} {
		if bytes.Contains(out, []byte(text)) != want {
			t.Errorf("%q is missing or should not be printed: %s", text, out)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "content" {
		t.Errorf("the file has %q: %v", b, err)
	}
	if harm := g.harm(out); harm != "" {
		t.Error(harm)
	}
}

// A program on Loam cannot read, write or signal anything outside. An executable that replaces parts of the
// runtime is rejected, and the error names the package.
func TestHostile(t *testing.T) {
	for _, p := range []Platform{Process, Machine} {
		t.Run(p.String(), func(t *testing.T) { testHostile(t, p) })
	}
}

func testHostile(t *testing.T, p Platform) {
	g := newTargets(t)
	names := sortedKeys(hostilePrograms)
	all := techniques(t, buildHostile(t, "calls"))
	if race.Enabled { // the go command builds the hostile program itself without the race detector
		names, all = names[:1], all[:1]
	}
	if len(names)+len(all) < 30 && !race.Enabled {
		t.Errorf("there are %d techniques", len(names)+len(all))
	}
	for _, name := range names {
		out := g.loamRun(t, p, name)
		if harm := g.harm(out); harm != "" {
			t.Errorf("%s: %s", name, harm)
			g.reset(t)
		}
		// If two functions have the same name, the linker may keep the runtime's own. This happens in runtime-gate,
		// which is then an ordinary program and is not rejected.
		refused := strings.HasPrefix(name, "cgo-") || strings.HasPrefix(name, "runtime-") && name != "runtime-gate" || strings.HasPrefix(name, "dynamic-")
		if refused && !bytes.HasPrefix(out, []byte("loam: ")) {
			t.Errorf("%s is not refused: %s", name, out)
		}
	}
	g.prepared(t, p)
	var two sync.WaitGroup
	turns := make(chan struct{}, 2)
	for _, name := range all {
		turns <- struct{}{}
		two.Go(func() {
			defer func() { <-turns }()
			if harm := g.harm(g.loamRun(t, p, "calls", name)); harm != "" {
				t.Errorf("%s, or the one beside it: %s", name, harm)
			}
		})
	}
	two.Wait()
}
