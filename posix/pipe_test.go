package posix

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/pipe"
)

func newPipe(t testing.TB, p *Process, flags int) (r, w int) {
	t.Helper()
	fds, errno := p.Pipe2(flags)
	ok(t, errno)
	return fds[0], fds[1]
}

// A reader waits for data and finds the end when the last writer has closed. A writer waits for room,
// and gets EPIPE without a reader (pipe(7)).
func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := files(t)
		r, w := newPipe(t, p, 0)
		go func() {
			synctest.Wait()
			write(t, p, w, "late")
		}()
		if got := read(t, p, r); got != "late" {
			t.Errorf("read %q", got)
		}
		long := make([]byte, 3*pipe.Size)
		var wg sync.WaitGroup
		wg.Go(func() { write(t, p, w, string(long)); p.Close(w) })
		total := 0
		for {
			got := read(t, p, r)
			if total += len(got); got == "" {
				break
			}
		}
		wg.Wait()
		if total != len(long) {
			t.Errorf("%d bytes came through", total)
		}
		r, w = newPipe(t, p, linux.O_NONBLOCK)
		_, errno := p.Read(r, make([]byte, 1))
		wantErrno(t, errno, linux.EAGAIN, "read of an empty pipe")
		ok(t, p.Close(r))
		_, errno = p.Write(w, []byte("x"))
		wantErrno(t, errno, linux.EPIPE, "write without a reader")
		_, errno = p.Write(w, nil)
		wantErrno(t, errno, 0, "write of no bytes without a reader")
		_, errno = p.Lseek(w, 0, 0)
		wantErrno(t, errno, linux.ESPIPE, "lseek")
	})
}

// Writes of up to PIPE_BUF bytes are atomic.
func TestPipeAtomic(t *testing.T) {
	p := files(t)
	r, w := newPipe(t, p, linux.O_NONBLOCK)
	n, errno := p.Write(w, make([]byte, pipe.Size+1))
	if ok(t, errno); n != pipe.Size {
		t.Errorf("%d bytes fit", n)
	}
	read := func(n int) { p.Read(r, make([]byte, n)) }
	read(pipe.Atomic - 1)
	_, errno = p.Write(w, make([]byte, pipe.Atomic))
	wantErrno(t, errno, linux.EAGAIN, "no room for all of it")
	if n, _ := p.Write(w, make([]byte, pipe.Atomic+1)); n != -1 {
		t.Errorf("%d bytes were written to a pipe without a free page", n)
	}
	read(1)
	if n, _ := p.Write(w, make([]byte, pipe.Atomic+1)); n != pipe.Atomic {
		t.Errorf("of more than PIPE_BUF %d bytes were written", n)
	}
	if n, _ := p.Ioctl(r, linux.FIONREAD, 0); n != pipe.Size {
		t.Errorf("FIONREAD says %d", n)
	}
}

// Opening a FIFO waits for the other end. With O_NONBLOCK, a writer gets ENXIO without a reader
// (fifo(7)).
func TestFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := files(t)
		ok(t, p.MknodAt(linux.AT_FDCWD, "/f", uint32(fs.Fifo|0o600), 0))
		_, errno := p.OpenAt(linux.AT_FDCWD, "/f", linux.O_WRONLY|linux.O_NONBLOCK, 0)
		wantErrno(t, errno, linux.ENXIO, "a writer alone")
		done := make(chan string)
		go func() {
			f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", linux.O_RDONLY, 0))
			done <- read(t, p, f)
			p.Close(f)
		}()
		synctest.Wait()
		w := fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", linux.O_WRONLY, 0))
		write(t, p, w, "through a name")
		if got := <-done; got != "through a name" {
			t.Errorf("read %q", got)
		}
		if st, _ := p.Fstat(w); st.Mode != fs.Fifo|0o600 {
			t.Errorf("fstat says %o", st.Mode)
		}
		ok(t, p.Close(w))
		r := fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", linux.O_RDONLY|linux.O_NONBLOCK, 0))
		if got := read(t, p, r); got != "" {
			t.Errorf("a FIFO that was closed still has %q", got)
		}
	})
}

// given is a standard stream for tests.
type given struct {
	in  chan string // carries input: the test sends, Read receives; closed: end of input
	out bytes.Buffer
}

func (g *given) Read(b []byte) (int, Errno) { return copy(b, <-g.in), 0 }

func (g *given) Write(b []byte) (int, Errno) {
	n, _ := g.out.Write(b)
	return n, 0
}
func (g *given) Flags() int              { return linux.O_RDWR }
func (g *given) Attr() fs.Attr           { return fs.Attr{Mode: fs.CharDevice | 0o620} }
func (g *given) Ioctl(int, []byte) Errno { return 0 }

// Descriptors of the same terminal share one input buffer. poll(2) on a descriptor that is open for writing takes no
// input from a reader.
func TestTerminalOpenedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &given{in: make(chan string)}
		p := New(Options{Streams: [3]Stream{g, g, g}})
		shown := fd(t)(p.OpenAt(linux.AT_FDCWD, "/dev/tty", linux.O_WRONLY, 0))
		if n, errno := p.Poll([]PollFD{{FD: shown, Events: PollIn | PollOut}}, 0); n != 1 {
			t.Fatalf("poll: %d, %v", n, errno)
		}
		typed := fd(t)(p.OpenAt(linux.AT_FDCWD, "/dev/tty", linux.O_RDONLY, 0))
		g.in <- "a key"
		if got := read(t, p, typed); got != "a key" {
			t.Errorf("read %q", got)
		}
		close(g.in)
	})
}

// In non-blocking mode, a program can read a key sequence byte by byte. EAGAIN after the first byte
// means that the key was Escape.
func TestStreamReadsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &given{in: make(chan string)}
		p := New(Options{Streams: [3]Stream{g, g, g}})
		_, errno := p.Fcntl(0, linux.F_SETFL, linux.O_NONBLOCK)
		wantErrno(t, errno, 0, "F_SETFL")
		b := make([]byte, 1)
		_, errno = p.Read(0, b)
		wantErrno(t, errno, linux.EAGAIN, "a read before there is a key")
		g.in <- "\x1b[A"
		synctest.Wait()
		for _, want := range "\x1b[A" {
			if n, errno := p.Read(0, b); n != 1 || errno != 0 || rune(b[0]) != want {
				t.Fatalf("read %q, %v, want %q", b[:max(n, 0)], errno, want)
			}
		}
	})
}

// Standard input is read only on demand, and poll(2) waits for it.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &given{in: make(chan string)}
		p := New(Options{Streams: [3]Stream{g, g, g}})
		go func() { synctest.Wait(); g.in <- "line\n" }()
		fds := []PollFD{{FD: 0, Events: PollIn}}
		if n, _ := p.Poll(fds, -1); n != 1 || fds[0].Revents != PollIn {
			t.Errorf("poll: %d, %v", n, fds)
		}
		if got := read(t, p, 0); got != "line\n" {
			t.Errorf("read %q", got)
		}
		tty := fd(t)(p.OpenAt(linux.AT_FDCWD, "/dev/tty", linux.O_RDWR, 0))
		write(t, p, tty, "out")
		if g.out.String() != "out" || tty != 3 {
			t.Errorf("descriptor %d wrote %q", tty, g.out.String())
		}
		close(g.in)
		if got := read(t, p, 0); got != "" {
			t.Errorf("behind the end %q", got)
		}
		_, errno := p.Lseek(0, 0, 0)
		wantErrno(t, errno, linux.ESPIPE, "lseek of a stream")
	})
}
