package main

import (
	"fmt"
	"os"
	"syscall"
)

// filled returns a pipe that holds some bytes.
func filled(s string) (r, w *os.File) {
	r, w, err := os.Pipe()
	must(err)
	w.WriteString(s)
	return r, w
}

// rest returns the contents of a pipe.
func rest(r *os.File) string {
	fd := int(r.Fd()) // Fd sets the blocking mode
	syscall.SetNonblock(fd, true)
	b := make([]byte, 100)
	n, err := syscall.Read(fd, b)
	if err != nil {
		return word(err)
	}
	return string(b[:n])
}

var pipes = []probe{
	{"tee", func() string {
		r, _ := filled("hello")
		r2, w2 := filled("")
		s := count(syscall.SYS_TEE, r.Fd(), w2.Fd(), 3, 0)
		return joined(s, rest(r), rest(r2))
	}},
	{"tee of an empty pipe, SPLICE_F_NONBLOCK", func() string {
		r, _ := filled("")
		_, w2 := filled("")
		return count(syscall.SYS_TEE, r.Fd(), w2.Fd(), 3, 2)
	}},
	{"tee of an empty pipe that nobody writes to", func() string {
		r, w := filled("")
		w.Close()
		_, w2 := filled("")
		return count(syscall.SYS_TEE, r.Fd(), w2.Fd(), 3, 0)
	}},
	{"tee of a file", func() string {
		_, w := filled("")
		return count(syscall.SYS_TEE, file("t", []byte("x")).Fd(), w.Fd(), 3, 0)
	}},
	{"tee from a pipe to itself", func() string { r, w := filled("x"); return count(syscall.SYS_TEE, r.Fd(), w.Fd(), 3, 0) }},
	{"vmsplice", func() string {
		r, w := filled("")
		b, a := buffer(5)
		copy(b, "hello")
		v := [4]uintptr{a, 2, a + 2, 3}
		s := count(syscall.SYS_VMSPLICE, w.Fd(), at(&v), 2, 0)
		return joined(s, rest(r))
	}},
	{"vmsplice from a pipe", func() string {
		r, _ := filled("hello")
		b, a := buffer(5)
		v := [2]uintptr{a, 5}
		s := count(syscall.SYS_VMSPLICE, r.Fd(), at(&v), 1, 0)
		return joined(s, string(b))
	}},
	{"vmsplice of a file", func() string {
		_, a := buffer(5)
		v := [2]uintptr{a, 5}
		return count(syscall.SYS_VMSPLICE, file("t", nil).Fd(), at(&v), 1, 0)
	}},
	{"splice from a file to a pipe", func() string {
		r, w := filled("")
		f := file("t", []byte("hello"))
		s := count(syscall.SYS_SPLICE, f.Fd(), 0, w.Fd(), 0, 4, 0)
		n, _ := f.Seek(0, 1)
		return joined(s, rest(r), fmt.Sprint(n))
	}},
	{"splice from a file at an offset", func() string {
		r, w := filled("")
		off := int64(1)
		s := count(syscall.SYS_SPLICE, file("t", []byte("hello")).Fd(), at(&off), w.Fd(), 0, 3, 0)
		return joined(s, rest(r), fmt.Sprint(off))
	}},
	{"splice from a pipe to a file", func() string {
		r, _ := filled("hello")
		f := file("t", nil)
		s := count(syscall.SYS_SPLICE, r.Fd(), 0, f.Fd(), 0, 10, 0)
		got, _ := os.ReadFile("t")
		return joined(s, string(got))
	}},
	{"splice from a pipe to a pipe", func() string {
		r, _ := filled("hello")
		r2, w2 := filled("")
		s := count(syscall.SYS_SPLICE, r.Fd(), 0, w2.Fd(), 0, 4, 0)
		return joined(s, rest(r), rest(r2))
	}},
	{"splice from a pipe to a socket", func() string {
		r, _ := filled("hello")
		p, _ := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		s := count(syscall.SYS_SPLICE, r.Fd(), 0, uintptr(p[0]), 0, 10, 0)
		b := make([]byte, 10)
		n, _ := syscall.Read(p[1], b)
		return joined(s, string(b[:max(n, 0)]))
	}},
	{"splice from a socket to a pipe", func() string {
		r, w := filled("")
		p, _ := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		syscall.Write(p[0], []byte("hello"))
		s := count(syscall.SYS_SPLICE, uintptr(p[1]), 0, w.Fd(), 0, 10, 0)
		return joined(s, rest(r))
	}},
	{"splice without a pipe", func() string {
		return count(syscall.SYS_SPLICE, file("a", []byte("x")).Fd(), 0, file("b", nil).Fd(), 0, 10, 0)
	}},
	{"splice with an offset of a pipe", func() string {
		r, _ := filled("hello")
		off := int64(0)
		return count(syscall.SYS_SPLICE, r.Fd(), at(&off), file("b", nil).Fd(), 0, 10, 0)
	}},
	{"splice of an empty pipe, SPLICE_F_NONBLOCK", func() string {
		r, _ := filled("")
		return count(syscall.SYS_SPLICE, r.Fd(), 0, file("b", nil).Fd(), 0, 10, 2)
	}},
	{"splice at the end of a file", func() string {
		_, w := filled("")
		return count(syscall.SYS_SPLICE, file("e", nil).Fd(), 0, w.Fd(), 0, 10, 0)
	}},
	{"splice with unknown flags", func() string {
		_, w := filled("")
		return count(syscall.SYS_SPLICE, file("e", nil).Fd(), 0, w.Fd(), 0, 10, 1<<20)
	}},
	{"a write to a pipe that nobody reads", func() string {
		r, w := filled("")
		r.Close()
		_, err := w.WriteString("x")
		return word(err)
	}},
	{"pipe2 O_DIRECT keeps packets apart", func() string {
		var fds [2]int
		if err := syscall.Pipe2(fds[:], syscall.O_DIRECT); err != nil {
			return word(err)
		}
		syscall.Write(fds[1], []byte("ab"))
		syscall.Write(fds[1], []byte("cd"))
		n, err := syscall.Read(fds[0], make([]byte, 10))
		return joined(word(err), fmt.Sprint(n))
	}},
}
