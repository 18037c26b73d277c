package unikernel

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Tests are built and run by a single `go test`. It gets an overlay for its builds, and a command of Loam
// that runs each test binary (-exec). Its output, caching and flags stay its own.
//
// Loam is added to every test binary through a package that the go command itself puts into each of them. So
// tests of packages in the standard library, in vendor folders and in the module cache work in the same way.
//
// Rejected: an added file for every package. The overlay cannot add files in the module cache.

// testMainFile is the file that Loam adds to every test binary (by go build -overlay).
const testMainFile = "testing/internal/testdeps/loam_guest.go"

// TestOptions describes a run of go test.
type TestOptions struct {
	Packages []string // package arguments, as for go test
	Platform Platform // platform on which the tests run
	Source   string   // a checkout of Loam: see Target.Source
	Dir      string   // the folder that Packages refer to; empty: the current folder
	Flags    []string // flags of go test
	Args     []string // arguments of the test binaries
	// Exec is the command that runs a test binary. go test appends the binary and its arguments. The
	// command must call RunProgram.
	Exec []string
}

// Test runs go test and returns its exit status. go test uses this process's standard streams. When ctx
// ends, go test is interrupted.
func Test(ctx context.Context, o TestOptions) (status int, err error) {
	c, err := openCache()
	if err != nil {
		return 0, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return 0, err
	}
	tools, err := findToolchain(ctx, c, dir)
	if err != nil {
		return 0, err
	}
	s, err := prepareStd(ctx, c, tools, o.Source, o.Platform)
	if err != nil {
		return 0, err
	}
	starts := o.Platform == Machine && testStarts(ctx, tools, dir, o.Flags, o.Packages)
	if starts {
		tools.env = withPlainFlags(tools.env, o.Flags)
	}
	list, err := testOverlay(c, tools, s, o.Platform, starts)
	if err != nil {
		return 0, err
	}
	args := []string{"test", "-overlay=" + list, "-exec=" + quote(o.Exec)}
	args = append(args, "-vet=off") // vet reads packages from disk, where Loam's packages do not exist
	args = append(append(append(args, s.flags...), o.Platform.flags(o.Flags)...), o.Packages...)
	if len(o.Args) > 0 {
		args = append(append(args, "-args"), o.Args...)
	}
	return tools.runTest(ctx, dir, args)
}

// testOverlay writes the overlay file for tests (go build -overlay) and returns its path.
func testOverlay(c cache, t *toolchain, s *std, platform Platform, starts bool) (string, error) {
	dir := c.path("build", digest("test", platform.String(), s.hash, strconv.FormatBool(starts)))
	added := filepath.Join(dir, "testdeps.go")
	if err := writeFile(added, importRoot("testdeps", platform, starts)); err != nil {
		return "", err
	}
	s.replace[filepath.Join(t.GOROOT, "src", testMainFile)] = added
	list := filepath.Join(dir, "overlay.json")
	return list, writeOverlay(list, s.replace)
}

// runTest runs the go command with this process's standard streams, and returns its exit status. If this
// process ends, the go command is killed, and then the test binaries (dieWithParent).
func (t *toolchain) runTest(ctx context.Context, dir string, args []string) (int, error) {
	cmd := exec.CommandContext(ctx, t.command, args...)
	cmd.Dir, cmd.Env = dir, t.environ(dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopDelay
	runtime.LockOSThread() // Pdeathsig is sent when the thread that has started the process ends
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return exitStatus(cmd.ProcessState, err)
}

// quote joins words to the value of one flag, in the form in which the go command splits it: separated by spaces, in single
// or double quotes if needed.
func quote(words []string) string {
	var quoted []string
	for _, w := range words {
		switch {
		case strings.Contains(w, "'"):
			w = `"` + w + `"`
		case w == "" || strings.ContainsAny(w, " \t\r\n\""):
			w = "'" + w + "'"
		}
		quoted = append(quoted, w)
	}
	return strings.Join(quoted, " ")
}
