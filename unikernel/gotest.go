package unikernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Tests are built and run by one `go test`, which has an overlay for its builds
// and a command of ours in front of each test binary (-exec): what it prints,
// caches, and makes of its flags is its own business.
//
// What joins Loam to a program joins it to a test binary by a package that the
// go command puts into each of them, and so without a look at any package:
// packages of the standard library, of vendor folders and of the module cache
// are all the same. Only Loam's own packages, which the standard library cannot
// import from where they are, get a file each.
//
// Rejected: a file for every package. It cannot be added in the module cache.

// The file that is added, to every test binary and in a checkout to a package.
// It goes to the external test package, which may import what imports the
// package.
const (
	testMainFile    = "testing/internal/testdeps/loam_guest.go"
	checkoutFile    = "loam_guest_test.go"
	checkoutPackage = "_test"
)

// TestOptions says what is tested.
type TestOptions struct {
	Packages []string // as for go test
	Platform Platform // what they run on
	Dir      string   // where they are looked up; empty: the current folder
	Flags    []string // of go test
	Args     []string // of the test binaries
	// Exec is the command that runs a test binary, which is added to it with its
	// arguments: it is expected to call RunProgram.
	Exec []string
}

// Test runs go test and returns its exit status. It writes to the standard
// streams. When ctx ends, go test is interrupted.
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
	checkout := checkoutOf(tools, dir)
	var own []tested
	if checkout != "" {
		std := false
		if own, std, err = listTested(ctx, tools, dir, o.Packages); err != nil {
			return 0, err
		}
		if std { // then this module would be in the way
			checkout, dir = "", "/"
		}
	}
	s, err := prepareStd(ctx, c, tools, checkout, o.Platform)
	if err != nil {
		return 0, err
	}
	list, err := testOverlay(c, tools, s, checkout, own, o.Platform)
	if err != nil {
		return 0, err
	}
	args := []string{"test", "-overlay=" + list, "-exec=" + quote(o.Exec)}
	args = append(args, "-vet=off") // vet looks for Loam's packages on the disk
	args = append(append(append(args, s.flags...), o.Platform.flags(o.Flags)...), o.Packages...)
	if len(o.Args) > 0 {
		args = append(append(args, "-args"), o.Args...)
	}
	return tools.runTest(ctx, dir, args)
}

// tested is what go list says about a package that is to be tested.
type tested struct {
	Dir, ImportPath, Name     string
	Standard                  bool
	TestGoFiles, XTestGoFiles []string
}

// listTested lists packages in a checkout of Loam: either they are Loam's own, or
// of the standard library.
func listTested(ctx context.Context, t *toolchain, dir string, packages []string) (own []tested, std bool, err error) {
	args := append([]string{"list", "-find", "-json=Dir,ImportPath,Name,Standard,TestGoFiles,XTestGoFiles", "--"}, packages...)
	out, err := t.run(ctx, dir, args...)
	if err != nil {
		return nil, false, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p tested
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, false, err
		}
		if p.Standard {
			std = true
		} else {
			own = append(own, p)
		}
	}
	if std && own != nil {
		return nil, false, errorf("test them one after the other", "%s is of Loam, and others are of the standard library", own[0].ImportPath)
	}
	return own, std, nil
}

// testOverlay writes the overlay and returns its file.
func testOverlay(c cache, t *toolchain, s *std, checkout string, own []tested, platform Platform) (string, error) {
	packages := map[string]string{} // file to add -> its package
	key := []string{"test", platform.String(), s.hash}
	for _, p := range own {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			packages[filepath.Join(p.Dir, checkoutFile)] = p.Name + checkoutPackage
		}
	}
	if checkout == "" {
		packages[filepath.Join(t.GOROOT, "src", testMainFile)] = "testdeps"
	}
	key = append(key, sortedKeys(packages)...)
	dir := c.path("build", digest(key...))
	for file, pkg := range packages {
		added := filepath.Join(dir, pkg+".go")
		if err := writeFile(added, importRoot(pkg, platform, checkout)); err != nil {
			return "", err
		}
		s.replace[file] = added
	}
	list := filepath.Join(dir, "overlay.json")
	return list, writeOverlay(list, s.replace)
}

// runTest runs the go command with the standard streams, and returns how it
// ended. Whatever ends this process ends it too, and it ends the test binaries
// (dieWithParent).
func (t *toolchain) runTest(ctx context.Context, dir string, args []string) (int, error) {
	cmd := exec.CommandContext(ctx, t.command, args...)
	cmd.Dir, cmd.Env = dir, t.environ(dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopDelay
	runtime.LockOSThread() // as in launch
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return exitStatus(cmd.ProcessState, err)
}

// quote makes one flag of a command, as the go command takes it apart: words
// between spaces, which may stand in quotes of either kind.
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
