//go:build linux

// Package fd connects a non-blocking file descriptor to the queue of a device, using the poller of
// the Go runtime. A Recv that waits parks its goroutine and occupies no thread. Send never waits.
// Packages tap, unixsock and afpacket are built on it.
//
// The runtime's poller is edge-triggered, and an edge that occurs before the wait was prepared is
// lost. Therefore every function passed to Read or to NewRoom must first try its system call and
// only then ask to wait.
package fd

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"loam/internal/crew"
	"loam/link"
)

// File is an open file descriptor registered with the poller. Its methods may be called from
// several goroutines; only one goroutine at a time may call Read.
type File struct {
	file *os.File
	raw  syscall.RawConn
}

// New takes ownership of descriptor fd and makes it non-blocking. On error, fd is closed; one error
// is that the poller cannot wait for fd.
func New(fd int, name string) (*File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	syscall.CloseOnExec(fd)
	return wrap(os.NewFile(uintptr(fd), name))
}

// Dup returns a File for f, and takes ownership of f. If the poller can wait for f, it uses f
// itself. Otherwise it duplicates the descriptor and closes f: descriptors inherited from a parent
// process arrive as files in blocking mode.
func Dup(f *os.File) (*File, error) {
	if f.SetDeadline(time.Time{}) == nil {
		return wrap(f)
	}
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	control := raw.Control(func(old uintptr) { fd, err = duplicate(old) })
	if control != nil {
		return nil, control
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return New(fd, f.Name())
}

func duplicate(fd uintptr) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// wrap returns a File for f, or closes f if the poller does not support it.
func wrap(f *os.File) (*File, error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = f.SetDeadline(time.Time{}) // fails if the poller does not support the file
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: cannot be waited for: %w", f.Name(), err)
	}
	return &File{file: f, raw: raw}, nil
}

// Do calls the function try with the descriptor. If the file is closed, it returns
// link.ErrClosed without calling try.
func (f *File) Do(try func(fd uintptr)) error {
	if f.raw.Control(try) != nil {
		return link.ErrClosed
	}
	return nil
}

// Read calls the function try immediately, and again whenever the descriptor becomes
// readable, until try returns true. It returns link.ErrClosed if the file is or gets
// closed.
func (f *File) Read(try func(fd uintptr) bool) error {
	if f.raw.Read(try) != nil {
		return link.ErrClosed
	}
	return nil
}

// Close closes the descriptor and wakes a Read that waits for it. When Close returns, no function
// passed to Do or Read is running. It may be called more than once.
func (f *File) Close() error {
	if err := f.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Room implements link.Queue.Room for a descriptor: after a Send that did not take all frames, it
// waits until the descriptor becomes writable, and signals. It has one goroutine, started on first
// use.
type Room struct {
	file *File
	// retry is called like the function passed to Read, but for writability. It returns true if
	// there is room.
	retry func(fd uintptr) bool
	bell  *link.Bell

	// short has a buffer of one. Short sends to it (a full channel means that the goroutine has
	// already been notified), the goroutine receives from it, and Close closes it.
	short chan struct{}

	mu      sync.Mutex // guards the fields started and closed
	started bool
	closed  bool
	crew    crew.Crew
}

// NewRoom returns a Room that calls retry to find out whether there is room again.
func NewRoom(f *File, retry func(fd uintptr) bool) *Room {
	return &Room{file: f, retry: retry, bell: link.NewBell(), short: make(chan struct{}, 1)}
}

// C returns the channel for link.Queue.Room.
func (r *Room) C() <-chan struct{} { return r.bell.C() }

// Short requests a signal: a Send did not take all frames.
func (r *Room) Short() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if !r.started {
		r.started = true
		r.crew.Start(r.loop)
	}
	select {
	case r.short <- struct{}{}:
	default:
	}
}

func (r *Room) loop() {
	for range r.short {
		if r.file.raw.Write(r.retry) != nil {
			return // the file was closed
		}
		r.bell.Ring()
	}
}

// Close ends the goroutine and closes the channel. The file must be closed first.
func (r *Room) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.short)
	}
	r.mu.Unlock()
	r.crew.Wait()
	r.bell.Close()
}

// Hang closes the channel while the file is still open: nothing more can be sent.
func (r *Room) Hang() { r.bell.Close() }
