//go:build linux

// Package fd drives a non-blocking file descriptor from the queue of a device,
// with the runtime's own poller: a Recv that waits parks its goroutine and holds
// no thread, and Send never waits. tap, unixsock and afpacket stand on it.
//
// The runtime's poller is edge triggered, and forgets an edge that came before
// the wait was prepared. So every function that is handed to Read or to a Room
// tries its system call first and only then asks to wait.
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

// File is an open descriptor. Its methods may be called from several goroutines,
// Read from one at a time.
type File struct {
	file *os.File
	raw  syscall.RawConn
}

// New takes over descriptor fd and makes it non-blocking. It closes fd if the
// poller cannot wait for it.
func New(fd int, name string) (*File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	syscall.CloseOnExec(fd)
	return wrap(os.NewFile(uintptr(fd), name))
}

// Dup makes a File of f, which is not to be used any more: descriptors that a
// parent process passed come as files in blocking mode, and are duplicated; a file
// that can be waited for is taken as it is.
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

func wrap(f *os.File) (*File, error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = f.SetDeadline(time.Time{}) // fails if the poller does not know the file
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: cannot be waited for: %w", f.Name(), err)
	}
	return &File{file: f, raw: raw}, nil
}

// Do calls try with the descriptor. It returns link.ErrClosed, and does not call
// it, once the file is closed.
func (f *File) Do(try func(fd uintptr)) error {
	if f.raw.Control(try) != nil {
		return link.ErrClosed
	}
	return nil
}

// Read calls try at once and then whenever the descriptor becomes readable,
// until it returns true. It returns link.ErrClosed when the file is closed.
func (f *File) Read(try func(fd uintptr) bool) error {
	if f.raw.Read(try) != nil {
		return link.ErrClosed
	}
	return nil
}

// Close closes the descriptor and wakes whoever waits for it. When it returns, no
// function given to Do or Read is running. It may be called more than once.
func (f *File) Close() error {
	if err := f.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Room waits for a descriptor to become writable after a Send that came up
// short, and rings. It has one goroutine, which starts with the first need.
type Room struct {
	file *File
	// retry is called like the function given to Read, for writability. It returns
	// true when there is room.
	retry func(fd uintptr) bool
	bell  *link.Bell

	// short has one place. Short sends (full: the goroutine has been told), the
	// goroutine receives, Close closes.
	short chan struct{}

	mu      sync.Mutex // guards started and closed
	started bool
	closed  bool
	crew    crew.Crew
}

// NewRoom returns a Room that asks retry whether there is room again.
func NewRoom(f *File, retry func(fd uintptr) bool) *Room {
	return &Room{file: f, retry: retry, bell: link.NewBell(), short: make(chan struct{}, 1)}
}

// C is what link.Queue.Room returns.
func (r *Room) C() <-chan struct{} { return r.bell.C() }

// Short says that a Send came up short: the bell will ring.
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
			return // closed
		}
		r.bell.Ring()
	}
}

// Close ends the goroutine and closes the bell. The file has to be closed first.
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

// Hang closes the bell while the file is still open: nothing can be sent any
// more.
func (r *Room) Hang() { r.bell.Close() }
