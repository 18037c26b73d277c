package posix

import (
	"strings"
	"testing"
	"testing/synctest"

	"loam/abi/linux"
	"loam/posix/event"
	"loam/posix/file"
	"loam/posix/pipe"
)

// splice moves bytes between a pipe and a file, in both directions, at the offset of the file or at an offset that
// the call passes.
func TestSplice(t *testing.T) {
	p := files(t)
	r, w := newPipe(t, p, linux.O_NONBLOCK)
	fd, errno := p.OpenAt(linux.AT_FDCWD, "f", create, 0o644)
	ok(t, errno)
	write(t, p, fd, "hello world")
	at := int64(6)
	if n, errno := p.Splice(fd, &at, w, nil, 100, 0); n != 5 || errno != 0 || at != 11 {
		t.Errorf("at an offset: %d, %v, then at %d", n, errno, at)
	}
	p.Lseek(fd, 0, 0)
	if n, errno := p.Splice(fd, nil, w, nil, 5, 0); n != 5 || errno != 0 {
		t.Errorf("at the file's offset: %d, %v", n, errno)
	}
	at = 20
	if n, errno := p.Splice(r, nil, fd, &at, 7, 0); n != 7 || errno != 0 || at != 27 {
		t.Errorf("to a file: %d, %v, then at %d", n, errno, at)
	}
	b := make([]byte, 40)
	n, _ := p.Pread(fd, b, 0)
	if want := "hello world" + strings.Repeat("\x00", 9) + "worldhe"; string(b[:n]) != want {
		t.Errorf("the file is %q, want %q", b[:n], want)
	}
	if got := read(t, p, r); got != "llo" {
		t.Errorf("the pipe has %q", got)
	}
	if n, errno := p.Splice(fd, nil, w, nil, 100, 0); n != 22 || errno != 0 {
		t.Errorf("to the end: %d, %v", n, errno)
	}
	if n, errno := p.Splice(fd, nil, w, nil, 100, 0); n != 0 || errno != 0 {
		t.Errorf("at the end: %d, %v", n, errno)
	}
}

// splice allocates memory as often as write, also if its output sees the sender.
func TestSpliceAllocs(t *testing.T) {
	p := files(t)
	r, w := newPipe(t, p, linux.O_NONBLOCK)
	a, b := unixPair(t, p, linux.SOCK_STREAM|linux.SOCK_NONBLOCK)
	sink := fd(t)(p.OpenAt(linux.AT_FDCWD, "f", create, 0o644))
	buffer := make([]byte, 8)
	for name, out := range map[string]int{"socket": a, "file": sink} {
		plain := testing.AllocsPerRun(100, func() {
			p.Write(out, buffer)
			p.Read(b, buffer)
			p.Lseek(sink, 0, 0)
		})
		spliced := testing.AllocsPerRun(100, func() {
			p.Write(w, buffer)
			p.Splice(r, nil, out, nil, len(buffer), 0)
			p.Read(b, buffer)
			p.Lseek(sink, 0, 0)
		})
		if spliced != plain {
			t.Errorf("%s: splice allocates %v times, write %v times", name, spliced, plain)
		}
	}
}

// sendfile and vmsplice to a pipe with O_DIRECT write no packets, use a new page for each call, and return the number of bytes
// that the pipe has room for, without a wait for the rest.
func TestSendToPipe(t *testing.T) {
	p := files(t)
	r, w := newPipe(t, p, linux.O_DIRECT)
	fd, errno := p.OpenAt(linux.AT_FDCWD, "f", create, 0o644)
	ok(t, errno)
	write(t, p, fd, strings.Repeat("x", 2*pipe.Size))
	for name, send := range map[string]func(n int) (int, Errno){
		"sendfile": func(n int) (int, Errno) { at := int64(0); return p.Sendfile(w, fd, &at, n) },
		"vmsplice": func(n int) (int, Errno) { return p.WriteNow(w, make([]byte, n), 0) },
	} {
		for range 2 {
			if n, errno := send(10); n != 10 || errno != 0 {
				t.Errorf("%s: %d, %v", name, n, errno)
			}
		}
		if got := read(t, p, r); len(got) != 20 {
			t.Errorf("%s: the read returned %d bytes, want 20", name, len(got))
		}
		send(10)
		if n, errno := send(2 * pipe.Size); n != pipe.Size-pipe.Atomic || errno != 0 {
			t.Errorf("%s to a pipe with little room: %d, %v", name, n, errno)
		}
		p.Read(r, make([]byte, pipe.Size))
	}
	_, errno = p.Sendfile(w, fd, nil, -1)
	wantErrno(t, errno, linux.EINVAL, "a negative length")
	closed, lonely := newPipe(t, p, 0)
	ok(t, p.Close(closed))
	_, errno = p.Sendfile(lonely, fd, nil, 10)
	wantErrno(t, errno, linux.EPIPE, "sendfile without a reader")
}

// sendfile of no bytes to a pipe waits for room and fails without a reader, as on Linux.
func TestSendNothing(t *testing.T) {
	p := files(t)
	r, w := newPipe(t, p, linux.O_NONBLOCK)
	fd, errno := p.OpenAt(linux.AT_FDCWD, "f", create, 0o644)
	ok(t, errno)
	if n, errno := p.Sendfile(w, fd, nil, 0); n != 0 || errno != 0 {
		t.Errorf("to an empty pipe: %d, %v", n, errno)
	}
	write(t, p, w, strings.Repeat("x", pipe.Size))
	_, errno = p.Sendfile(w, fd, nil, 0)
	wantErrno(t, errno, linux.EAGAIN, "to a full pipe")
	ok(t, p.Close(r))
	_, errno = p.Sendfile(w, fd, nil, 0)
	wantErrno(t, errno, linux.EPIPE, "without a reader")
}

// splice and tee return the errors that splice(2) and tee(2) list.
func TestSpliceErrors(t *testing.T) {
	p := files(t)
	r, w := newPipe(t, p, 0)
	r2, w2 := newPipe(t, p, 0)
	file, _ := p.OpenAt(linux.AT_FDCWD, "f", create, 0o644)
	log, _ := p.OpenAt(linux.AT_FDCWD, "log", create|linux.O_APPEND, 0o644)
	closed, lonely := newPipe(t, p, 0)
	p.Close(closed)
	write(t, p, w2, "x")
	dir := fd(t)(p.OpenAt(linux.AT_FDCWD, "/", linux.O_RDONLY, 0))
	at := int64(0)
	for name, c := range map[string]struct {
		got  func() (int, Errno)
		want Errno
	}{
		"no pipe":            {func() (int, Errno) { return p.Splice(file, nil, file, nil, 1, 0) }, linux.EINVAL},
		"one pipe":           {func() (int, Errno) { return p.Splice(r, nil, w, nil, 1, 0) }, linux.EINVAL},
		"offset of a pipe":   {func() (int, Errno) { return p.Splice(r, &at, file, nil, 1, 0) }, linux.ESPIPE},
		"wrong end":          {func() (int, Errno) { return p.Splice(w, nil, file, nil, 1, 0) }, linux.EBADF},
		"closed":             {func() (int, Errno) { return p.Splice(99, nil, w, nil, 1, 0) }, linux.EBADF},
		"unknown flag":       {func() (int, Errno) { return p.Splice(r, nil, file, nil, 1, 16) }, linux.EINVAL},
		"empty":              {func() (int, Errno) { return p.Splice(r, nil, file, nil, 1, pipe.Nonblock) }, linux.EAGAIN},
		"to what appends":    {func() (int, Errno) { return p.Splice(r2, nil, log, nil, 1, 0) }, linux.EINVAL},
		"nobody reads":       {func() (int, Errno) { return p.Splice(r2, nil, lonely, nil, 1, 0) }, linux.EPIPE},
		"file, nobody reads": {func() (int, Errno) { return p.Splice(file, nil, lonely, nil, 1, 0) }, linux.EPIPE},
		"a directory":        {func() (int, Errno) { return p.Splice(dir, nil, w, nil, 1, 0) }, linux.EINVAL},
		"directory, offset":  {func() (int, Errno) { return p.Splice(dir, &at, w, nil, 1, 0) }, linux.EINVAL},
		"sent directory":     {func() (int, Errno) { return p.Sendfile(file, dir, nil, 1) }, linux.EINVAL},
		"tee of a file":      {func() (int, Errno) { return p.Tee(file, w, 1, 0) }, linux.EINVAL},
		"tee to itself":      {func() (int, Errno) { return p.Tee(r, w, 1, 0) }, linux.EINVAL},
		"tee of nothing":     {func() (int, Errno) { return p.Tee(r, w2, 1, pipe.Nonblock) }, linux.EAGAIN},
	} {
		if n, errno := c.got(); errno != c.want {
			t.Errorf("%s: %d, %v, want %v", name, n, errno, c.want)
		}
	}
}

// splice waits for bytes, and for room; tee leaves the bytes in their pipe.
func TestSpliceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := files(t)
		r, w := newPipe(t, p, 0)
		r2, w2 := newPipe(t, p, 0)
		go func() {
			synctest.Wait()
			write(t, p, w, "abc")
		}()
		if n, errno := p.Tee(r, w2, 100, 0); n != 3 || errno != 0 {
			t.Errorf("tee: %d, %v", n, errno)
		}
		if n, errno := p.Splice(r, nil, w2, nil, 100, 0); n != 3 || errno != 0 {
			t.Errorf("splice: %d, %v", n, errno)
		}
		if got := read(t, p, r2); got != "abcabc" {
			t.Errorf("the second pipe has %q", got)
		}
		write(t, p, w2, strings.Repeat("x", pipe.Size))
		write(t, p, w, "yz")
		go func() {
			synctest.Wait()
			read(t, p, r2)
		}()
		if n, errno := p.Splice(r, nil, w2, nil, 100, 0); n != 2 || errno != 0 {
			t.Errorf("splice to a full pipe: %d, %v", n, errno)
		}
		p.Close(w)
		if n, errno := p.Splice(r, nil, w2, nil, 100, 0); n != 0 || errno != 0 {
			t.Errorf("splice at the end: %d, %v", n, errno)
		}
	})
}

// O_NONBLOCK of a regular file has no effect on splice and sendfile: they wait for the pipe.
func TestSpliceNonblockingFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := files(t)
		fd, errno := p.OpenAt(linux.AT_FDCWD, "f", create|linux.O_NONBLOCK, 0o644)
		ok(t, errno)
		write(t, p, fd, "content")
		full := strings.Repeat("x", pipe.Size)
		drain := func(r, w int) { p.Read(r, make([]byte, pipe.Size)) }
		for name, c := range map[string]struct {
			held string // content of the pipe
			move func(r, w int) (int, Errno)
			then func(r, w int)
		}{
			"sendfile":     {full, func(r, w int) (int, Errno) { return p.Sendfile(w, fd, new(int64), 7) }, drain},
			"splice":       {full, func(r, w int) (int, Errno) { return p.Splice(fd, new(int64), w, nil, 7, 0) }, drain},
			"splice to it": {"", func(r, w int) (int, Errno) { return p.Splice(r, nil, fd, new(int64), 7, 0) }, func(r, w int) { write(t, p, w, "changed") }},
		} {
			r, w := newPipe(t, p, 0)
			write(t, p, w, c.held)
			done := make(chan struct{})
			go func() {
				if n, errno := c.move(r, w); n != 7 || errno != 0 {
					t.Errorf("%s: %d, %v", name, n, errno)
				}
				close(done)
			}()
			synctest.Wait()
			c.then(r, w)
			<-done
		}
	})
}

// Some files cannot be written, whatever their access mode: writev(2) of no bytes and splice(2) to them return EINVAL.
func TestNeverWritten(t *testing.T) {
	p := files(t)
	p.credentials.PID = 7
	r, _ := newPipe(t, p, linux.O_NONBLOCK)
	fds := map[string]int{}
	for what, open := range map[string]func() (int, Errno){
		"epoll set":        func() (int, Errno) { return p.EpollCreate(0) },
		"timerfd":          func() (int, Errno) { return p.TimerFDCreate(linux.CLOCK_MONOTONIC, 0) },
		"pidfd":            func() (int, Errno) { return p.PidFDOpen(7, 0) },
		"queue":            func() (int, Errno) { return p.MqOpen("queue", linux.O_RDWR|linux.O_CREAT, 0o600, nil) },
		"pidfd of another": func() (int, Errno) { return p.install(event.NewProcess(file.NewProcessRef(9)), 0) },
	} {
		fd, errno := open()
		ok(t, errno)
		fds[what] = fd
	}
	for what, fd := range fds {
		wantErrno(t, p.MayWrite(fd), linux.EINVAL, what)
		_, errno := p.Splice(r, nil, fd, nil, 1, 0)
		wantErrno(t, errno, linux.EINVAL, "splice to "+what)
	}
	wantErrno(t, p.MayRead(fds["epoll set"]), linux.EINVAL, "epoll set")
	wantErrno(t, p.MayRead(fds["pidfd"]), linux.EINVAL, "pidfd")
	wantErrno(t, p.MayRead(fds["queue"]), 0, "queue")
}
