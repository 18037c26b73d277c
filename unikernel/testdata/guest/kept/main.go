// Command kept uses the file system of a disk at /data. Its argument selects the operation.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"example.com/guest/internal/check"
)

const (
	first = "/data/dir/first"
	size  = 3<<20 + 17
)

func main() {
	switch os.Args[1] {
	case "write":
		write()
	case "change":
		check.Nil(os.RemoveAll("/data/dir"), "os.RemoveAll")
		write()
		read()
		fmt.Println("changed")
	case "fills":
		fills()
	case "read":
		read()
	case "refused":
		refused()
	case "panics":
		check.Nil(os.WriteFile("/data/panicked", []byte("before the panic"), 0o600), "os.WriteFile")
		panic("as asked")
	case "terminated", "handled":
		terminated(os.Args[1] == "handled")
	}
}

// content returns the contents of a test file.
func content() []byte { return []byte(strings.Repeat("kept on disk. ", size/14+1)[:size]) }

// write creates files, and syncs them by each of the calls for it.
func write() {
	check.Nil(os.MkdirAll("/data/dir", 0o750), "os.MkdirAll")
	f, err := os.Create(first)
	check.Nil(err, "the call before")
	_, err = f.Write(content())
	check.Nil(err, "the call before")
	check.Nil(f.Sync(), "f.Sync")
	check.Nil(syscall.Fdatasync(int(f.Fd())), "syscall.Fdatasync")
	_, _, errno := syscall.Syscall(306 /* syncfs */, f.Fd(), 0, 0)
	check.That(errno == 0, "syncfs: %v", errno)
	check.Nil(f.Close(), "f.Close")
	syscall.Sync()
	check.Nil(os.Symlink("first", "/data/dir/link"), "os.Symlink")
	check.Nil(os.Link(first, "/data/dir/second"), "os.Link")
	check.Nil(os.WriteFile("/data/gone", []byte("x"), 0o600), "os.WriteFile")
	check.Nil(os.Rename("/data/gone", "/data/here"), "os.Rename")
	check.Nil(os.WriteFile("/data/not synced", []byte("written before the end"), 0o600), "os.WriteFile")
	var s syscall.Statfs_t
	check.Nil(syscall.Statfs("/data", &s), "syscall.Statfs")
	check.That(s.Type == 0xef53 && s.Bfree > 0 && s.Bfree < s.Blocks && s.Files > 0, "statfs: %v", s)
	mounted("rw")
	_, err = os.OpenFile(device(), os.O_RDWR|os.O_EXCL, 0)
	check.That(errors.Is(err, syscall.EBUSY), "exclusive use of a mounted disk: %v", err)
	disk, err := os.OpenFile(device(), os.O_RDWR, 0) // resize2fs(8) opens it so
	check.Nil(err, "os.OpenFile")
	_, err = disk.WriteAt(make([]byte, 4096), 0)
	check.That(errors.Is(err, syscall.EBUSY), "writing to a mounted disk: %v", err)
	check.Nil(disk.Close(), "Close")
	fmt.Println("written")
}

// fills writes more than the disk image of the host can hold: the file system becomes read-only, and the program
// continues.
func fills() {
	f, err := os.Create("/data/small")
	check.Nil(err, "os.Create")
	_, err = f.WriteString("durable")
	check.Nil(err, "WriteString")
	check.Nil(f.Sync(), "Sync")
	large, err := os.Create("/data/large")
	check.Nil(err, "os.Create")
	for range 32 {
		if _, err = large.Write(make([]byte, 1<<20)); err == nil {
			err = large.Sync()
		}
		if err != nil {
			break
		}
	}
	check.That(errors.Is(err, syscall.EIO), "a write that the host has no room for: %v", err)
	err = os.WriteFile("/data/other", nil, 0o600)
	check.That(errors.Is(err, syscall.EROFS), "a file afterwards: %v", err)
	got, err := os.ReadFile("/data/small")
	check.That(err == nil && string(got) == "durable", "what was durable: %q, %v", got, err)
	mounted("ro")
	fmt.Println("continued")
}

// device returns the path of the disk's device.
func device() string {
	for _, name := range []string{"/dev/vda", "/dev/sda", "/dev/nvme0n1"} {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return "none"
}

// mounted checks the disk's line in /proc/mounts.
func mounted(how string) {
	mounts, err := os.ReadFile("/proc/mounts")
	check.Nil(err, "the call before")
	check.That(strings.Contains(string(mounts), device()+" /data ext4 "+how+" 0 0\n"), "mounts: %v", string(mounts))
}

// read checks the files that write created.
func read() {
	for _, name := range []string{first, "/data/dir/link", "/data/dir/second"} {
		got, err := os.ReadFile(name)
		check.Nil(err, "the call before")
		check.That(string(got) == string(content()), "%s has %d bytes", name, len(got))
	}
	got, err := os.ReadFile("/data/not synced")
	check.Nil(err, "the call before")
	check.That(string(got) == "written before the end", "what was not synced: %v", string(got))
	_, err = os.Stat("/data/gone")
	check.That(errors.Is(err, fs.ErrNotExist), "the old name: %v", err)
	fmt.Println("kept")
}

// refused checks that a read-only file system refuses writes.
func refused() {
	read()
	err := os.WriteFile("/data/new", nil, 0o600)
	check.That(errors.Is(err, syscall.EROFS), "a new file: %v", err)
	mounted("ro")
	fmt.Println("refused")
}

// terminated writes a file, and waits for a signal that ends the program.
func terminated(handled bool) {
	signals := make(chan os.Signal, 1)
	if handled {
		signal.Notify(signals, syscall.SIGTERM)
	}
	check.Nil(os.WriteFile("/data/terminated", []byte("before the signal"), 0o600), "os.WriteFile")
	fmt.Println("ready")
	<-signals
	check.Nil(os.WriteFile("/data/handled", []byte("after the signal"), 0o600), "os.WriteFile")
	fmt.Println("handled")
}
