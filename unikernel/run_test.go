package unikernel

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/internal/netns"
	"loam/internal/race"
)

// The tests run programs of testdata/guest. This binary starts itself again as a command that calls Run,
// because a guest uses its parent's streams.

// helper is an environment variable that makes this test binary act as that command.
const helper = "LOAM_TEST_RUN"

// onMachine is a variable that makes the command run programs in a virtual machine. Its value is the memory in MiB.
const onMachine = "LOAM_TEST_MACHINE"

// withDisks is a variable that sets Options.Disks, with one line for each disk; disks with new in their names are
// created. onModel sets MachineConfig.Model.
const (
	withDisks = "LOAM_TEST_DISKS"
	onModel   = "LOAM_TEST_MODEL"
)

// machineCPUs is the name of an environment variable with the machine's number of CPUs; the default is 1.
const machineCPUs = "LOAM_TEST_CPUS"

func TestMain(m *testing.M) {
	if machine := os.Getenv(onTap); machine != "" {
		if err := hostTap(machine); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ok")
		os.Exit(0)
	}
	if os.Getenv(helper) == "" {
		os.Exit(withCache(m))
	}
	kind, _ := strconv.Atoi(os.Getenv(helper))
	os.Unsetenv(helper)
	platform := Process
	memory, err := strconv.ParseUint(os.Getenv(onMachine), 10, 32)
	if err == nil {
		platform = Machine
	}
	cpus, _ := strconv.Atoi(os.Getenv(machineCPUs))
	var disks []Disk
	for _, text := range strings.FieldsFunc(os.Getenv(withDisks), func(r rune) bool { return r == '\n' }) {
		d, err := ParseDisk(text)
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		if strings.Contains(text, "new") {
			d.Size = 64 << 20
		}
		disks = append(disks, d)
	}
	target := Target{Args: os.Args[1:2], Platform: platform}
	if os.Args[1] == "" {
		target.Args = nil
	}
	status, err := Run(context.Background(), Options{
		Target:  target,
		Machine: MachineConfig{Memory: memory << 20, Model: os.Getenv(onModel), CPUs: cpus},
		Args:    os.Args[2:],
		Volumes: testVolume(),
		Shared:  testShared(),
		Folder:  os.Getenv(inFolder),
		Env:     testEnv(),
		Root:    os.Getenv(withFiles),
		User:    os.Getenv(asUser),

		Entrypoint: testEntrypoint(),

		RootSnapshot: os.Getenv(withSnapshot) != "",
		RootShared:   os.Getenv(withSharedRoot) != "",
		Disks:        disks,

		KeepRoot: os.Getenv(withRoot) != "",
		Network:  Network{Kind: NetworkKind(kind), Forwards: testForwards(), Relay: os.Getenv(withRelay) != ""},
	})
	if err != nil {
		fmt.Println("loam:", err)
		status = 2
	}
	os.Exit(status)
}

// withRoot is a variable that sets Options.KeepRoot.
const withRoot = "LOAM_TEST_ROOT"

// withSnapshot is a variable that sets Options.RootSnapshot.
const withSnapshot = "LOAM_TEST_SNAPSHOT"

// withSharedRoot is a variable that sets Options.RootShared.
const withSharedRoot = "LOAM_TEST_SHARED_ROOT"

// asUser is a variable with the user of a Linux program.
const asUser = "LOAM_TEST_USER"

// withFiles is a variable with the root folder of a Linux program.
const withFiles = "LOAM_TEST_FILES"

// withVolume is a variable with folders and files that are copied into the guest, separated by colons.
const withVolume = "LOAM_TEST_VOLUME"

// withShared is a variable with folders that the program may change; they are mounted at /shared0 and so on. inFolder
// is a variable with the program's working folder.
const (
	withShared = "LOAM_TEST_SHARED"
	inFolder   = "LOAM_TEST_FOLDER"
)

// testShared are the folders of withShared.
func testShared() (all []Shared) {
	for i, dir := range strings.FieldsFunc(os.Getenv(withShared), func(r rune) bool { return r == ':' }) {
		all = append(all, Shared{Host: dir, Guest: "/shared" + strconv.Itoa(i), NoCache: i%2 == 1})
	}
	return all
}

// testEnv returns the program's variables that place temporary files in the folder of inFolder.
func testEnv() []string {
	if kv := os.Getenv(withEnv); kv != "" {
		return []string{kv}
	}
	if folder := os.Getenv(inFolder); folder != "" {
		return []string{"TMPDIR=" + folder}
	}
	return nil
}

// withEnv is a variable with a variable of the program, KEY=VALUE. withEntrypoint is one that sets Options.Entrypoint.
const (
	withEnv        = "LOAM_TEST_ENV"
	withEntrypoint = "LOAM_TEST_ENTRYPOINT"
)

// testEntrypoint returns the program that replaces an image's Entrypoint; nil: none.
func testEntrypoint() *string {
	if program, ok := os.LookupEnv(withEntrypoint); ok {
		return &program
	}
	return nil
}

// testVolume returns the folder that withVolume names.
func testVolume() (all []Volume) {
	for _, path := range filepath.SplitList(os.Getenv(withVolume)) {
		all = append(all, Volume{Host: path, Guest: path})
	}
	return all
}

// withCache runs the tests with an empty cache for Loam, and with the user's cache for the go command,
// which speeds up builds.
func withCache(m *testing.M) int {
	gocache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	dir, release, err := cacheFolder()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer release()
	os.Setenv("GOCACHE", strings.TrimSpace(string(gocache)))
	os.Setenv("XDG_CACHE_HOME", dir)
	return m.Run()
}

// cacheFolder returns an empty folder for Loam's cache, and a function that empties it. The folder has the same path in each
// run of this tree's tests: the path is in flags of the compiler, so the go command compiles Loam's packages again if the
// path differs. While another run uses that folder, a run gets a folder of its own.
func cacheFolder() (dir string, release func(), err error) {
	tree, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	sum := fnv.New64a()
	io.WriteString(sum, tree)
	dir = filepath.Join(os.TempDir(), fmt.Sprintf("loam-test-%d-%x", os.Getuid(), sum.Sum64()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", nil, err
	}
	lock, err := lockOwn(dir)
	if err != nil {
		dir, err = os.MkdirTemp("", "loam-test-")
		return dir, func() { os.RemoveAll(dir) }, err
	}
	empty := func() error { return os.RemoveAll(filepath.Join(dir, "loam")) }
	return dir, func() { empty(); lock.Close() }, empty()
}

// lockOwn opens and locks a folder. It returns an error if another run has locked it, or if another user can write to it.
func lockOwn(dir string) (*os.File, error) {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var stat syscall.Stat_t
	if err = syscall.Fstat(fd, &stat); err == nil && (int(stat.Uid) != os.Getuid() || stat.Mode&0o077 != 0) {
		err = os.ErrPermission
	}
	if err == nil {
		err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// guestCommand returns a command that runs a program of testdata/guest.
func guestCommand(kind NetworkKind, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"./testdata/guest/" + program}, args...)...)
	cmd.Env = append(os.Environ(), helper+"="+strconv.Itoa(int(kind)))
	return cmd
}

// Each of these programs tests the system calls of Loam that it makes itself, and prints ok if all results are
// correct.
func TestPrograms(t *testing.T) {
	for program, kind := range map[string]NetworkKind{
		"sockets": NoNetwork, "raw": NoNetwork, "web": UserNetwork, "early": NoNetwork, "child": UserNetwork, "bubble": NoNetwork, "allocs": NoNetwork, "goroutines": UserNetwork,
		"files": NoNetwork, "calls": NoNetwork, "icmp": NoNetwork, "bounds": NoNetwork,
	} {
		if race.Enabled && kind == NoNetwork {
			continue // the command only waits for such a program, which is built without the race detector
		}
		t.Run(program, func(t *testing.T) {
			out, err := guestCommand(kind, program).CombinedOutput()
			if err != nil || string(out) != "ok\n" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// The program icmp gets the same results on Linux as on Loam.
func TestICMPOnLinux(t *testing.T) {
	if os.Geteuid() != 0 || !netns.Can() {
		t.Skip("needs a network namespace, and root: a user cannot open raw sockets")
	}
	const prepare = "echo 0 0 >/proc/sys/net/ipv4/ping_group_range && echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6 && ip link set lo up && exec "
	cmd := exec.Command("sh", "-c", prepare+onThisHost(t, "icmp"))
	netns.Enter(cmd)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// The program bounds, which tests openat2, gets the same results on Linux as on Loam.
func TestBoundsOnLinux(t *testing.T) {
	if out, err := exec.Command(onThisHost(t, "bounds")).CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// The command's exit status is the program's.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"exit", "0"}, 0},
		{[]string{"exit", "5"}, 5},
		{[]string{"kill", "15"}, 128 + 15},
		{[]string{"kill", "9"}, 128 + 9},
	} {
		cmd := guestCommand(NoNetwork, "child", c.args...)
		cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != c.want {
			t.Errorf("%v: status %d, want %d", c.args, got, c.want)
		}
	}
	cmd := guestCommand(NoNetwork, "child", "cat")
	cmd.Stdin = strings.NewReader("through both")
	if out, err := cmd.Output(); string(out) != "through both" || err != nil {
		t.Errorf("standard streams: %q, %v", out, err)
	}
}

// running starts the program testdata/guest/signals with the command, which inherits files. It returns the lines that the
// program prints, once it is ready.
func running(t *testing.T, p Platform, inherited ...*os.File) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := guestCommand(NoNetwork, "signals")
	cmd.ExtraFiles = inherited
	if p == Machine {
		cmd.Env = append(cmd.Env, onMachine+"=256")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the program begins with %q, %v", lines.Text(), lines.Err())
	}
	return cmd, lines
}

// Each signal reaches the program exactly once, also when it is sent to the command's whole process group.
func TestSignals(t *testing.T) {
	for _, p := range []Platform{Process, Machine} {
		t.Run(p.String(), func(t *testing.T) { testSignals(t, p) })
	}
}

func testSignals(t *testing.T, p Platform) {
	cmd, lines := running(t, p)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		cmd.Process.Signal(s)
		if !lines.Scan() || lines.Text() != s.String() {
			t.Errorf("sent %v, arrived %q", s, lines.Text())
		}
	}
	if lines.Scan() {
		t.Errorf("and then %q", lines.Text())
	}
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 7 {
		t.Errorf("status %d, want 7", got)
	}
}

// kill -9 of the command leaves no process of the guest behind.
func TestParentDies(t *testing.T) {
	cmd, lines := running(t, Process)
	cmd.Process.Kill()
	if lines.Scan() { // the pipe ends when the guest has ended
		t.Errorf("the guest still says %q", lines.Text())
	}
	cmd.Wait()
}

// A build without changes takes well under a second. The test only checks that the program is not built
// again.
func TestRebuild(t *testing.T) {
	plan := func() *Plan {
		p, err := NewPlan(context.Background(), Target{Args: []string{"./testdata/guest/early"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Build(context.Background()); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, err := os.Stat(plan().Program)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.Stat(plan().Program)
	if err != nil || !os.SameFile(first, second) {
		t.Errorf("built again: %v", err)
	}
}

// A target that cannot be built gives a one-line error with advice, and leaves no files.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := writeFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("broken/go.mod", "module broken\n\ngo 1.24\n")
	write("broken/main.go", "package main\n\nfunc main() { nonsense }\n")
	write("library/go.mod", "module library\n\ngo 1.24\n")
	write("library/x.go", "package library\n")
	write("newer/go.mod", "module newer\n\ngo 1.99\n")
	write("newer/main.go", "package main\n\nfunc main() {}\n")
	write("bare/main.go", "package main\n\nfunc main() {}\n")
	t.Setenv("GOTOOLCHAIN", "local")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "nothing to run"},
		{[]string{dir + "/broken"}, "undefined: nonsense"},
		{[]string{dir + "/library"}, "is package library, not a program"},
		{[]string{dir + "/newer"}, "requires go >= 1.99"},
		{[]string{dir + "/bare"}, "is in no module"},
		{[]string{dir + "/missing"}, "there is no"},
		{[]string{dir + "/missing.go"}, "there is no"},
		{[]string{dir + "/bare/main.go", dir + "/library/x.go"}, "another folder"},
		{[]string{dir + "/bare/main.go", "x"}, "not a Go file"},
		{[]string{dir + "/broken", "x"}, "is too much"},
		{[]string{"fmt"}, "not a program"},
	} {
		var status *Error
		p, err := NewPlan(context.Background(), Target{Args: c.args})
		if err == nil {
			err = p.Build(context.Background())
			if _, serr := os.Stat(p.Program); serr == nil {
				t.Errorf("%v: a program was left behind", c.args)
			}
		}
		if !errors.As(err, &status) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v; want one line with %q", c.args, err, c.want)
		}
	}
}

// An interrupted build ends at once and leaves no executable.
func TestInterruptedBuild(t *testing.T) {
	p, err := NewPlan(context.Background(), Target{Args: []string{"./testdata/guest/web"}, Flags: []string{"-ldflags=-X=main.stamp=" + time.Now().String()[:10]}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Build(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(p.Program); err == nil {
		t.Error("a program was left behind")
	}
}

// Vendored modules, workspaces and single files build, and nothing is written to the program's module.
func TestTargetForms(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"vendored/go.mod":                      "module example.com/vendored\n\ngo 1.24\n\nrequire example.org/dep v1.0.0\n",
		"vendored/main.go":                     "package main\n\nimport \"example.org/dep\"\n\nfunc main() { println(dep.X) }\n",
		"vendored/vendor/modules.txt":          "# example.org/dep v1.0.0\n## explicit; go 1.24\nexample.org/dep\n",
		"vendored/vendor/example.org/dep/d.go": "package dep\n\nconst X = \"vendored\"\n",
		"work/go.work":                         "go 1.24\n\nuse (\n\t./a\n\t./b\n)\n",
		"work/a/go.mod":                        "module example.com/a\n\ngo 1.24\n",
		"work/a/main.go":                       "package main\n\nimport \"example.com/b\"\n\nfunc main() { println(b.X) }\n",
		"work/b/go.mod":                        "module example.com/b\n\ngo 1.24\n",
		"work/b/b.go":                          "package b\n\nconst X = \"workspace\"\n",
		"single/x.go":                          "package main\n\nfunc main() { println(\"single\") }\n",
	} {
		if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	before := listing(t, dir)
	for target, want := range map[string]string{"vendored": "vendored", "work/a": "workspace", "single/x.go": "single"} {
		cmd := exec.Command(os.Args[0], filepath.Join(dir, target))
		cmd.Env = append(os.Environ(), helper+"="+strconv.Itoa(int(NoNetwork)))
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want+"\n" {
			t.Errorf("%s: %q, %v", target, out, err)
		}
	}
	if after := listing(t, dir); !bytes.Equal(before, after) {
		t.Errorf("the modules were changed:\n%s\nto\n%s", before, after)
	}
}

// listing describes every file below dir.
func listing(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
