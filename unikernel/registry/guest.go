package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// State is the state of a guest.
type State string

// Values of State.
const (
	Starting State = "starting" // the program is being built, or its machine is starting
	Running  State = "running"
	Exited   State = "exited"
	Lost     State = "lost" // the loam command was killed, so the exit status is unknown
)

// Guest is a guest as another process sees it.
type Guest struct {
	Record
	State  State   `json:"state"`
	Result *Result `json:"result,omitempty"` // nil unless State is Exited

	dir  *os.Root
	lock *os.File
}

// Close closes the files of the guest. The exported fields stay valid.
func (g *Guest) Close() {
	g.lock.Close()
	g.dir.Close()
}

// Running reports whether the guest's loam command was running when the guest was looked up.
func (g *Guest) Running() bool { return g.State == Starting || g.State == Running }

// kept reports whether the entry of a guest that has ended is of use.
func (g *Guest) kept() bool { return g.Detached && !g.Started.IsZero() }

// List returns all guests in the order of their names. Their files are closed. The error concerns guests that cannot be read;
// the other guests are in the list nevertheless.
func (r *Registry) List() (list []Guest, err error) {
	names, err := r.names()
	for _, name := range names {
		g, oerr := r.open(name)
		switch {
		case oerr == nil:
			g.Close()
			list = append(list, *g)
		case !errors.Is(oerr, fs.ErrNotExist): // otherwise it was removed meanwhile
			err = errors.Join(err, fmt.Errorf("the guest %s cannot be read: %w", name, oerr))
		}
	}
	return list, err
}

// missing is the error for a name that no guest has. It matches fs.ErrNotExist.
type missing struct{ err *Error }

func (m missing) Error() string      { return m.err.Error() }
func (m missing) Unwrap() error      { return m.err }
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// Find returns the guest with a name. The caller closes it. If there is none, it returns an *Error that matches
// fs.ErrNotExist.
func (r *Registry) Find(name string) (*Guest, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	g, err := r.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing{&Error{fmt.Sprintf("there is no guest with the name %s", name), "see loam ps -a"}}
	}
	return g, err
}

// open opens a guest and determines its state.
func (r *Registry) open(name string) (*Guest, error) {
	dir, err := r.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	g := &Guest{dir: dir}
	if g.lock, err = dir.Open(lockFile); err != nil {
		dir.Close()
		return nil, err
	}
	held, err := g.held()
	if err != nil {
		g.Close()
		return nil, err
	}
	data, err := dir.ReadFile(recordFile)
	if err != nil {
		g.Close()
		return nil, err
	}
	g.Record = parseRecord(data)
	g.Name = name
	switch {
	case held && g.Started.IsZero():
		g.State = Starting
	case held:
		g.State = Running
	default:
		g.State = Lost
		if g.Result, err = g.result(); err == nil {
			g.State = Exited
		}
	}
	return g, nil
}

// held reports whether the guest's loam command runs. Readers use a shared lock, so they do not disturb each other, and
// release it at once.
func (g *Guest) held() (bool, error) {
	free, err := tryLock(g.lock, syscall.LOCK_SH)
	if err != nil || !free {
		return !free, err
	}
	return false, os.NewSyscallError("flock", syscall.Flock(int(g.lock.Fd()), syscall.LOCK_UN))
}

// parseRecord parses the content of the file of a record. A damaged record yields a guest without properties, which can be
// listed and removed, but not stopped.
func parseRecord(data []byte) Record {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return Record{}
	}
	s.Record.Birth = s.Birth
	return s.Record
}

// result reads the result, which the loam command has written before it released the lock. The file is open, so the
// result can be read after the removal of the entry.
func (g *Guest) result() (*Result, error) {
	data, err := io.ReadAll(io.NewSectionReader(g.lock, 0, 1<<20))
	if err != nil {
		return nil, err
	}
	r := new(Result)
	return r, json.Unmarshal(data, r)
}

// Wait waits until the guest has ended, and returns its result. It returns an *Error if the loam command was killed.
func (g *Guest) Wait(ctx context.Context) (*Result, error) {
	for {
		held, err := g.held()
		if err != nil {
			return nil, err
		}
		if !held {
			break
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
	r, err := g.result()
	if err != nil {
		return nil, &Error{fmt.Sprintf("the loam command of %s was killed, so the exit status is not known", g.Name), "remove the guest: loam rm " + g.Name}
	}
	return r, nil
}

// Remove removes the entry of a guest that has ended. It returns an *Error if the guest runs.
func (r *Registry) Remove(ctx context.Context, name string) error {
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := r.Find(name)
	if err != nil {
		return err
	}
	defer g.Close()
	if g.Running() {
		return &Error{fmt.Sprintf("%s runs", name), "end it first: loam stop " + name}
	}
	return r.discard(name)
}
