// Command coherent checks that read, write and mmap of one file access the same bytes, within a process and between
// processes. It prints "coherent" if they do.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"syscall"
)

func main() {
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

const pages, page = 4, 4096

func run() error {
	if len(os.Args) > 1 {
		return child(os.Args[1])
	}
	dir, err := os.MkdirTemp("", "coherent")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(pages * page); err != nil {
		return err
	}
	shared, err := mmap(f, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	private, err := mmap(f, syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return check(f, shared, private)
}

func mmap(f *os.File, flags int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, pages*page, syscall.PROT_READ|syscall.PROT_WRITE, flags)
}

func check(f *os.File, shared, private []byte) error {
	_ = shared[page] // makes the page present before the write
	if _, err := f.WriteAt([]byte("written"), page-3); err != nil {
		return err
	}
	if got := string(shared[page-3 : page+4]); got != "written" {
		return fmt.Errorf("the mapping has %q after a write", got)
	}
	copy(shared[2*page:], "stored")
	b := make([]byte, 6)
	if _, err := f.ReadAt(b, 2*page); err != nil || string(b) != "stored" {
		return fmt.Errorf("a read after a store: %q, %v", b, err)
	}
	copy(private[3*page:], "private")
	if shared[3*page] != 0 {
		return fmt.Errorf("a store to a private mapping changed the file")
	}
	out, err := exec.Command(os.Args[0], f.Name()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the other process: %w: %s", err, out)
	}
	if got := string(shared[:5]); got != "child" {
		return fmt.Errorf("the mapping has %q after a store of another process", got)
	}
	if err := f.Truncate(page + 2); err != nil {
		return err
	}
	if err := f.Truncate(pages * page); err != nil {
		return err
	}
	if got := string(shared[page : page+4]); got != "tt\x00\x00" || shared[2*page] != 0 {
		return fmt.Errorf("the mapping has %q after the file was cut", got)
	}
	if err := punched(f, shared); err != nil {
		return err
	}
	if err := syscall.Ftruncate(int(f.Fd()), page); err != nil {
		return err
	}
	if err := beyond(shared); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	fmt.Println("coherent")
	return nil
}

// punched checks that a mapping shows a hole as zeros, and that a read returns what is stored there afterwards. It
// succeeds on a file system without holes.
func punched(f *os.File, shared []byte) error {
	const keepSize, punchHole = 1, 2
	copy(shared[page:], bytes.Repeat([]byte("full"), 3*page/4))
	err := syscall.Fallocate(int(f.Fd()), keepSize|punchHole, page+100, 2*page)
	if err == syscall.EOPNOTSUPP {
		return nil
	}
	if err != nil {
		return err
	}
	if got := string(shared[page+96 : page+104]); got != "full\x00\x00\x00\x00" || shared[2*page] != 0 || shared[3*page+100] != 'f' {
		return fmt.Errorf("the mapping has %q around a hole", got)
	}
	copy(shared[2*page:], "again")
	b := make([]byte, 7)
	if _, err := f.ReadAt(b, 2*page-1); err != nil || string(b) != "\x00again\x00" {
		return fmt.Errorf("the hole has %q after a store: %v", b, err)
	}
	return nil
}

// beyond checks that an access behind the end of the file raises SIGBUS.
func beyond(shared []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			err = errors.New("there is a page behind the end of the file")
		}
	}()
	_ = shared[0]
	shared[page]++
	return nil
}

// child stores to a mapping of the file that the parent process has mapped.
func child(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	shared, err := mmap(f, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	if got := string(shared[2*page : 2*page+6]); got != "stored" {
		return fmt.Errorf("%q in the other process", got)
	}
	copy(shared, "child")
	return nil
}
