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

// toolchain is the Go installation that builds a program. The go command selects it in the program's
// folder: a go.mod may require another release than the one in PATH.
type toolchain struct {
	GOROOT     string
	GOVERSION  string
	GOMODCACHE string
	GOMOD      string // path of the go.mod in effect; empty or os.DevNull: none
	GOWORK     string // the go.work in effect, empty, or "off"
	GOFLAGS    string

	command string   // path of the go command
	env     []string // environment of go commands
}

// guestEnv is added to the user's environment in builds for a guest.
var guestEnv = []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}

// findToolchain queries the go command in dir.
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

// inModuleCache reports whether path is in the module cache. The go command does not overlay files there.
func (t *toolchain) inModuleCache(path string) bool {
	rel, err := filepath.Rel(t.GOMODCACHE, path)
	return t.GOMODCACHE != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// moveOut gives a downloaded toolchain, which lies in the module cache, a GOROOT outside it. The new GOROOT
// consists of symbolic links, except for its source: real folders with hard links or copies. The go command
// lists no packages (std) in folders that are symbolic links, and embeds no files that are.
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

// linkAll creates symbolic links in one folder (to) for all entries of another folder (from) except one.
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

// linkTree recreates the folders of one folder (from) in another folder (to), with hard
// links to the files, or with copies if the two are on different devices.
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

// environ returns the environment of a go command that runs in dir. It sets PWD: if dir is reached through
// a symbolic link, the command would otherwise use the resolved path and not find the overlay's files for
// dir.
func (t *toolchain) environ(dir string) []string {
	if !filepath.IsAbs(dir) {
		return t.env
	}
	return append(slices.Clip(t.env), "PWD="+dir)
}

// stopDelay is how long an interrupted go command may take to clean up.
const stopDelay = 5 * time.Second

// signalDelay is the longest time between the arrivals of one signal at several processes.
const signalDelay = time.Second

// run runs the go command in dir and returns its standard output. A failure of the command is an *Error
// with the first relevant line of its messages.
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

// awaitSignal waits up to signalDelay for ctx to end. Ctrl-C sends a signal to the go command and to this
// process; the command may end before ctx does.
func awaitSignal(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(signalDelay):
	}
}

// relativePlace matches the start of a line that reports a position in a file with a relative name.
var relativePlace = regexp.MustCompile(`(?m)^[^\s/:#][^\s:]*\.go:\d`)

// fromHere rewrites file names that the go command printed relative to dir. They become relative to the
// current folder, or absolute if that is shorter.
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

// firstComplaint returns the line of the go command's output that states the problem, or instead if there
// is none. Lines that only say which package imports, or which module requires, another are skipped. A line
// that ends with a colon is joined with the indented lines after it.
func firstComplaint(output, instead string) string {
	begun := "" // a line that ends with a colon, with the lines joined to it
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
