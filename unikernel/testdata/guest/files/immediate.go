package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"example.com/guest/internal/check"
)

// immediate tests the fast path that package os has on Loam for files whose calls never block. Results have to equal
// those of the slow path.
func immediate() {
	elsewhere()
	refusals()
	turns()
	for range 100 {
		closing()
	}
}

func create(name string) *os.File {
	f, err := os.Create(name)
	check.Nil(err, "create")
	return f
}

// elsewhere: a descriptor that refers to another file than when it was opened (dup2(2)).
func elsewhere() {
	one, two := create("one"), create("two")
	write(one, "before ")
	check.Nil(syscall.Dup3(int(two.Fd()), int(one.Fd()), 0), "dup3")
	write(one, "through one ")
	_, err := one.WriteAt([]byte("T"), 0)
	check.Nil(err, "write at an offset")
	write(two, "through two")
	check.Equal(content("one"), "before ", "the file that was replaced")
	check.Equal(content("two"), "Through one through two", "the file that took its place")
	check.Nil(one.Close(), "close")
	check.Nil(two.Close(), "close")
}

func write(f *os.File, text string) {
	n, err := f.Write([]byte(text))
	check.That(n == len(text) && err == nil, "write to %s: %d, %v", f.Name(), n, err)
}

// refusals: calls that fail, and calls without effect.
func refusals() {
	f := create("refusals")
	b := []byte("text")
	write(f, "text")
	n, err := f.Read(b)
	check.That(n == 0 && err == io.EOF, "read at the end: %d, %v", n, err)
	n, err = f.ReadAt(b, 2)
	check.That(n == 2 && err == io.EOF && string(b[:2]) == "xt", "read beyond the end: %d, %v", n, err)
	n, err = f.WriteAt([]byte("more"), 6)
	check.That(n == 4 && err == nil && content("refusals") == "text\x00\x00more", "write beyond the end: %d, %v", n, err)
	n, err = f.Read(nil)
	check.That(n == 0 && err == nil, "read of nothing: %d, %v", n, err)
	n, err = f.Write(nil)
	check.That(n == 0 && err == nil, "write of nothing: %d, %v", n, err)
	check.Nil(f.Close(), "close")
	for _, b := range [][]byte{b, nil} {
		if len(b) > 0 {
			n, err = f.WriteAt(b, 0)
			check.That(n == 0 && errors.Is(err, os.ErrClosed), "write at an offset to a closed file: %d, %v", n, err)
			n, err = f.ReadAt(b, 0)
			check.That(n == 0 && errors.Is(err, os.ErrClosed), "read at an offset from a closed file: %d, %v", n, err)
		}
		n, err = f.Write(b)
		check.That(n == 0 && errors.Is(err, os.ErrClosed), "write to a closed file: %d, %v", n, err)
		n, err = f.Read(b)
		check.That(n == 0 && errors.Is(err, os.ErrClosed), "read from a closed file: %d, %v", n, err)
	}
	for _, c := range []struct {
		name  string
		flags int
		write bool
		want  error
	}{
		{"refusals", os.O_RDONLY, true, syscall.EBADF},
		{"refusals", os.O_WRONLY, false, syscall.EBADF},
		{".", os.O_RDONLY, false, syscall.EISDIR},
		{"/dev/full", os.O_WRONLY, true, syscall.ENOSPC},
		{"/dev/null", os.O_WRONLY, false, syscall.EBADF},
		{"/dev/null", os.O_RDONLY, true, syscall.EBADF},
	} {
		f, err := os.OpenFile(c.name, c.flags, 0)
		check.Nil(err, c.name)
		calls := []func() (int, error){
			func() (int, error) { return f.Read(b) }, func() (int, error) { return f.ReadAt(b, 0) },
		}
		if c.write {
			calls = []func() (int, error){
				func() (int, error) { return f.Write(b) }, func() (int, error) { return f.WriteAt(b, 0) },
			}
		}
		for _, call := range calls {
			n, err := call()
			check.That(n == 0 && errors.Is(err, c.want), "%s, opened with %#x, write is %v: %d, %v", c.name, c.flags, c.write, n, err)
		}
		f.Close()
	}
}

// turns: concurrent writes of several goroutines are not interleaved.
func turns() {
	const goroutines, lines = 8, 200
	f := create("turns")
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			line := strings.Repeat(string(rune('a'+i)), 99) + "\n"
			for range lines {
				write(f, line)
			}
		})
	}
	all.Wait()
	check.Nil(f.Close(), "close")
	for line := range strings.Lines(content("turns")) {
		check.That(line == strings.Repeat(line[:1], 99)+"\n", "a line is %q", line)
	}
	check.Equal(len(content("turns")), goroutines*lines*100, "bytes")
}

// closing: a file is closed while others write to it, and another file gets its number. Each write goes to the first
// file or fails.
func closing() {
	f := create("closing")
	start := make(chan bool)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			<-start
			for {
				n, err := f.Write([]byte("first"))
				if err != nil {
					check.That(n == 0 && errors.Is(err, os.ErrClosed), "write: %d, %v", n, err)
					return
				}
			}
		})
	}
	close(start)
	check.Nil(os.Remove("closing"), "remove")
	check.Nil(f.Close(), "close")
	for range 4 {
		next := create("next")
		write(next, "second")
		check.Equal(content("next"), "second", "a file that was opened meanwhile")
		check.Nil(next.Close(), "close")
	}
	all.Wait()
}
