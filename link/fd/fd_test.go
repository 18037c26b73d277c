//go:build linux

package fd

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"loam/link"
)

func socketPair(t *testing.T) (a, b *File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = New(fds[0], "a"); err != nil {
		t.Fatal(err)
	}
	if b, err = New(fds[1], "b"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

// readByte is an argument for File.Read: it reads one byte, and reports whether the read has ended.
func readByte(fd uintptr) bool {
	var b [1]byte
	_, err := syscall.Read(int(fd), b[:])
	return err != syscall.EAGAIN
}

// fill writes to the file until it has no more room.
func fill(t *testing.T, f *File) {
	t.Helper()
	if err := f.Do(func(fd uintptr) {
		for {
			if _, err := syscall.Write(int(fd), make([]byte, 4096)); err != nil {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func TestReadWaits(t *testing.T) {
	a, b := socketPair(t)
	read := make(chan error)
	go func() { read <- a.Read(readByte) }()
	if err := b.Do(func(fd uintptr) { syscall.Write(int(fd), []byte{1}) }); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Errorf("Read: %v", err)
	}
}

func TestCloseWakesRead(t *testing.T) {
	a, _ := socketPair(t)
	read := make(chan error)
	go func() { read <- a.Read(readByte) }()
	for range 2 {
		if err := a.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := <-read; err != link.ErrClosed {
		t.Errorf("Read: %v, want ErrClosed", err)
	}
	if err := a.Do(func(uintptr) { t.Error("called with a closed descriptor") }); err != link.ErrClosed {
		t.Errorf("Do: %v, want ErrClosed", err)
	}
}

// After a call of Short (the file had no room), Room signals once, as soon as the other end has read.
func TestRoom(t *testing.T) {
	a, b := socketPair(t)
	r := NewRoom(a, Writable)
	for range 3 {
		fill(t, a)
		r.Short()
		r.Short()
		if err := b.Do(func(fd uintptr) {
			for buf := make([]byte, 1<<16); ; {
				if _, err := syscall.Read(int(fd), buf); err != nil {
					return
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		<-r.C()
	}
	a.Close()
	r.Close()
	r.Close()
	r.Short() // has no effect after Close
	for range r.C() {
	}
}

func TestCloseEndsRoom(t *testing.T) {
	a, _ := socketPair(t)
	r := NewRoom(a, Writable)
	fill(t, a)
	r.Short()
	a.Close()
	r.Close()
	if _, open := <-r.C(); open {
		t.Error("Room rang on a descriptor that is full and closed")
	}
}

// dupReads checks that a File made of reader reads what is written to writer.
func dupReads(t *testing.T, reader, writer *os.File) {
	t.Helper()
	f, err := Dup(reader)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	writer.Write([]byte{1})
	if err := f.Read(readByte); err != nil {
		t.Errorf("Read: %v", err)
	}
}

// A file in blocking mode, as inherited from a parent, works and is closed. A file that the poller
// does not support is rejected.
func TestDup(t *testing.T) {
	var pair [2]int
	if err := syscall.Pipe2(pair[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	blocking, writer := os.NewFile(uintptr(pair[0]), "r"), os.NewFile(uintptr(pair[1]), "w")
	defer writer.Close()
	dupReads(t, blocking, writer)
	if err := blocking.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the original was left open: %v", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	dupReads(t, reader, writer)
	disk, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if f, err := Dup(disk); err == nil {
		f.Close()
		t.Error("a disk file was accepted")
	}
}
