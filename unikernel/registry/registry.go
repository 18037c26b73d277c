// Package registry keeps a list of the guests that a user runs. The command "loam run" makes an entry for each guest.
// Other commands list the entries, stop guests, and read the output of detached guests.
//
// The registry is a folder with a folder for each entry, whose name is the name of the guest:
//
//	NAME/lock      locked (flock(2)) by the loam command that runs the guest; after its end, the result as JSON, and spaces
//	NAME/guest     the Record, as JSON
//	NAME/output.N  parts of the output of a detached guest; the newest two are kept
//	.lock          locked while an entry is created or removed
//	.new-NAME, .old-NAME  entries that are being created or removed
//
// A guest runs exactly as long as the lock of its entry is held. The kernel releases the lock when the loam command
// ends for any reason, and at a restart of the machine, so no entry can claim to run when it does not. An entry appears
// by a rename when its lock is already held. No process ID is trusted without the lock: see process.go.
//
// A detached guest keeps its entry after its end, until Remove. A guest in the foreground removes its entry at its end.
// If the loam command was killed, the entry stays without a result. Create removes such entries, except those of detached
// guests, whose output may still be of use.
//
// The folder belongs to the user, and no other user can read or write it. All its files are opened relative to its
// descriptor (os.Root). Guests have no access to it: the caller must reject folders for which Exposes is true. A guest that
// could write the folder would choose which process Stop kills.
//
// Reading order: registry.go, place.go, entry.go, guest.go, process.go, output.go, follow.go.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Error reports a problem that the user can solve. Its text is one line.
type Error struct {
	What string // the problem
	Next string // what the user can do
}

// Error implements error.
func (e *Error) Error() string { return e.What + ": " + e.Next }

// Registry is an open registry.
type Registry struct {
	root   *os.Root
	places []string // folders that are registries of the user, with this one first
}

// Close closes the registry. Its entries stay open.
func (r *Registry) Close() error { return r.root.Close() }

// Exposes reports whether a guest that gets a file or folder of the host could reach a registry of the user: host contains
// the registry or lies in it. This applies to registries in all folders that Open may choose, because the user may start
// guests with and without XDG_RUNTIME_DIR. If a path cannot be resolved, Exposes compares the paths as they are.
func (r *Registry) Exposes(host string) bool {
	a := resolved(host)
	for _, place := range r.places {
		if b := resolved(place); within(a, b) || within(b, a) {
			return true
		}
	}
	return false
}

// resolved returns an absolute path without symbolic links, as far as it can be resolved.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// within reports whether the path inner is outer or lies in it.
func within(inner, outer string) bool {
	return inner == outer || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
}

// MaxName is the maximum length of a name.
const MaxName = 63

// CheckName returns an *Error unless name can be the name of a guest: up to MaxName letters, digits, and the signs
// "_", "." and "-", with a letter or digit first. No name is therefore a path, a flag or a file of the registry itself.
func CheckName(name string) error {
	ok := name != "" && len(name) <= MaxName
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		ok = ok && (letter || i > 0 && (c == '_' || c == '.' || c == '-'))
	}
	if !ok {
		return &Error{fmt.Sprintf("%q is no name of a guest", name),
			fmt.Sprintf("use 1 to %d letters, digits and _.- with a letter or digit first", MaxName)}
	}
	return nil
}

// pollTime is the interval at which this package looks again at a file or lock of another process.
const pollTime = 50 * time.Millisecond

// pause waits for pollTime. It returns an error if ctx ends.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pollTime):
		return nil
	}
}

// tryLock tries to lock a file. It returns false if another process holds a lock that excludes it. how is LOCK_EX or
// LOCK_SH.
func tryLock(f *os.File, how int) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err {
		case nil:
			return true, nil
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return false, nil
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// lockTime is the maximum time to wait for the lock of the registry. Only a process that is stopped while it holds the lock
// delays others so long. It is a variable for tests.
var lockTime = 15 * time.Second

// lock locks the registry against the creation and removal of entries. It returns the function that releases the lock.
func (r *Registry) lock(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockTime, errors.New("another loam command holds the lock of the list of guests: end it, or continue it if it is stopped"))
	defer cancel()
	f, err := r.root.OpenFile(".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		locked, err := tryLock(f, syscall.LOCK_EX)
		if err == nil && !locked {
			err = pause(ctx)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		if locked {
			return func() { f.Close() }, nil
		}
	}
}

// names returns the names of all entries, in alphabetical order.
func (r *Registry) names() (names []string, err error) {
	all, err := r.all()
	for _, name := range all {
		if CheckName(name) == nil {
			names = append(names, name)
		}
	}
	return names, err
}

// all returns the names of all folders of the registry, in alphabetical order.
func (r *Registry) all() (names []string, err error) {
	list, err := fs.ReadDir(r.root.FS(), ".")
	for _, f := range list {
		if f.IsDir() {
			names = append(names, f.Name())
		}
	}
	return names, err
}

// sweep removes useless entries: those that were being created or removed when a process was killed, and those
// of guests whose loam command was killed, unless the guest was detached and had started. The caller holds the lock of the
// registry.
func (r *Registry) sweep() error {
	all, err := r.all()
	for _, name := range all {
		switch {
		case strings.HasPrefix(name, newPrefix), strings.HasPrefix(name, oldPrefix):
			err = errors.Join(err, r.root.RemoveAll(name))
		case CheckName(name) == nil:
			err = errors.Join(err, r.sweepEntry(name))
		}
	}
	return err
}

// sweepEntry removes a useless entry. Under the lock of the registry, every entry has its files, so one without
// them is no entry.
func (r *Registry) sweepEntry(name string) error {
	g, err := r.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r.discard(name)
	}
	if err != nil {
		return err
	}
	defer g.Close()
	if g.Running() || g.kept() {
		return nil
	}
	return r.discard(name)
}

// Prefixes of the names of entries that are being created or removed.
const (
	newPrefix = ".new-"
	oldPrefix = ".old-"
)

// discard removes an entry. It disappears from the list at once. The caller holds the lock of the registry.
func (r *Registry) discard(name string) error {
	old := oldPrefix + name
	if err := r.root.RemoveAll(old); err != nil {
		return err
	}
	if err := r.root.Rename(name, old); err != nil {
		return err
	}
	return r.root.RemoveAll(old)
}
