package unikernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// toolchain is the Go installation that builds a program, as the go command
// chooses it in the folder of the program: a go.mod may ask for another release
// than the one in PATH.
type toolchain struct {
	GOROOT     string
	GOVERSION  string
	GOMODCACHE string
	GOMOD      string // the go.mod that is in force, or empty, or os.DevNull
	GOWORK     string // the go.work that is in force, or empty, or "off"
	GOFLAGS    string

	command string   // the go command
	env     []string // of its processes
}

// guestEnv is what a build for a guest needs beside the user's own environment.
var guestEnv = []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}

// findToolchain asks the go command in dir.
func findToolchain(ctx context.Context, c cache, dir string) (*toolchain, error) {
	command, err := exec.LookPath("go")
	if err != nil {
		return nil, errorf("install Go from https://go.dev/dl and put it in PATH", "there is no go command")
	}
	t := &toolchain{command: command, env: append(os.Environ(), guestEnv...)}
	out, err := t.run(ctx, dir, "env", "-json", "GOROOT", "GOVERSION", "GOMODCACHE", "GOMOD", "GOWORK", "GOFLAGS")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, t); err != nil {
		return nil, errorf("is this the go command of the Go project?", "%s: %v", command, err)
	}
	if t.inModuleCache(t.GOROOT) {
		if err := t.moveOut(c); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// inModuleCache reports whether the go command refuses to overlay a path.
func (t *toolchain) inModuleCache(path string) bool {
	rel, err := filepath.Rel(t.GOMODCACHE, path)
	return t.GOMODCACHE != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// moveOut gives a toolchain that was downloaded, and so lies in the module
// cache, a GOROOT elsewhere, made of links to it. Its source has real folders and
// hard links, or copies: the go command lists no packages (std) in folders that
// are symbolic links, and embeds no such files.
func (t *toolchain) moveOut(c cache) error {
	root := c.path("goroot", digest(t.GOROOT, t.GOVERSION, "real files"))
	real := t.GOROOT
	err := c.fill(root, func(dir string) error {
		if err := linkAll(real, dir, "src"); err != nil {
			return err
		}
		return linkTree(filepath.Join(real, "src"), filepath.Join(dir, "src"))
	})
	if err != nil {
		return err
	}
	t.GOROOT = root
	t.command = filepath.Join(root, "bin", "go")
	t.env = append(t.env, "GOROOT="+root, "GOTOOLCHAIN=local")
	return nil
}

// linkAll links everything in from, but for one name, into to.
func linkAll(from, to, except string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == except {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// linkTree makes the folders of from anew in to, with hard links to its files, or
// copies where the two are on different devices.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if os.Link(path, filepath.Join(to, rel)) == nil {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o444)
	})
}

// environ is the environment of a go command that runs in dir. It tells the command the name
// of that folder: where a symbolic link leads to it, the command would find another, and take
// what the overlay puts there for files of somewhere else.
func (t *toolchain) environ(dir string) []string {
	if !filepath.IsAbs(dir) {
		return t.env
	}
	return append(slices.Clip(t.env), "PWD="+dir)
}

// stopDelay is how long a go command that was interrupted may tidy up.
const stopDelay = 5 * time.Second

// signalDelay is for how long a signal to several processes may have reached one of them only.
const signalDelay = time.Second

// run runs the go command in dir and returns what it prints. The error has the
// first line of what it complains about.
func (t *toolchain) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.command, args...)
	cmd.Dir, cmd.Env = dir, t.environ(dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopDelay
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGINT {
		awaitSignal(ctx)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if exit == nil {
		return nil, errorf("is Go installed properly?", "go %s: %v", args[0], err)
	}
	output := fromHere(complaint.String(), dir)
	e := &Error{What: firstComplaint(output, fmt.Sprintf("go %s: %v", args[0], err)), Output: output}
	if strings.Contains(e.What, "GOTOOLCHAIN=local") {
		e.Next = "set GOTOOLCHAIN=auto, or install that release of Go"
	}
	return nil, e
}

// awaitSignal waits a moment for ctx to end. By Ctrl-C the go command has a signal of its own,
// and may have ended by it before ours has come to ctx.
func awaitSignal(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(signalDelay):
	}
}

// relativePlace is how a line begins that is about a place in a file of a relative name.
var relativePlace = regexp.MustCompile(`(?m)^[^\s/:#][^\s:]*\.go:\d`)

// fromHere has the names of files that the go command printed in dir begin at our folder, where
// who reads them is, as they would if it had run there: the shorter of the relative and the full.
func fromHere(output, dir string) string {
	here, err := os.Getwd()
	if err != nil || here == dir {
		return output
	}
	return relativePlace.ReplaceAllStringFunc(output, func(place string) string {
		full := filepath.Join(dir, place)
		if rel, err := filepath.Rel(here, full); err == nil && len(rel) < len(full) {
			return rel
		}
		return full
	})
}

// firstComplaint is the line of the go command's output that says what is wrong,
// or, if there is none, what is said instead. Lines that only say by whom a package is
// imported, or a module required, stand before it. A line that ends with a colon goes on in
// those behind it that are further in.
func firstComplaint(output, instead string) string {
	begun := "" // a line with a colon, and what has been added to it
	for line := range strings.Lines(output) {
		further := strings.HasPrefix(line, "\t")
		line = strings.TrimSpace(line)
		switch {
		case begun != "" && further:
			begun += " " + line
		case begun != "":
			return begun
		case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, "go: downloading "):
		case strings.HasSuffix(line, " imports"), strings.HasSuffix(line, " requires"):
			instead = strings.TrimPrefix(line, "go: ")
		case strings.HasSuffix(line, ":"):
			begun = strings.TrimPrefix(line, "go: ")
		default:
			return strings.TrimPrefix(line, "go: ")
		}
	}
	return cmp.Or(begun, instead)
}
