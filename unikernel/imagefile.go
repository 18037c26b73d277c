package unikernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	blockfile "loam/block/file"
	"loam/fs/ext4/format"
)

// Image files on the host: creating and locking them.

// createImage creates the image of a disk, with an ext4 file system if the disk is mounted.
func createImage(d Disk) (*os.File, error) {
	if d.ReadOnly || d.Snapshot {
		return nil, errorf("create it (loam disk create)", "%s: there is no %s, and a new image would be only read", d.flag(), d.File)
	}
	if d.Path == "" {
		return newImageFile(d.File, int64(d.Size))
	}
	return CreateImage(d.File, int64(d.Size), format.Config{})
}

// newImageFile creates a sparse file of size bytes, and opens it for reading and writing.
func newImageFile(name string, size int64) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errorf("name a file in a folder that can be written", "%s cannot be created: %v", name, err)
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		os.Remove(name)
		return nil, errorf("free some space, or choose a smaller size", "%s cannot have %d bytes: %v", name, size, err)
	}
	return f, nil
}

// CreateImage creates an image of size bytes with an empty ext4 file system, and opens it for reading and writing. On
// error, no file is left behind.
func CreateImage(name string, size int64, c format.Config) (*os.File, error) {
	f, err := newImageFile(name, size)
	if err != nil {
		return nil, err
	}
	err = formatFile(name, c)
	if err == nil {
		err = syncFolder(name)
	}
	if err != nil {
		f.Close()
		os.Remove(name)
		return nil, errorf("", "%s: %v", name, err)
	}
	return f, nil
}

// formatFile makes a file system in a file.
func formatFile(name string, c format.Config) error {
	d, err := blockfile.Open(name, blockfile.Config{Buffered: true})
	if err != nil {
		return err
	}
	return errors.Join(format.Write(d, c), d.Close())
}

// syncFolder makes a new file's name durable.
func syncFolder(name string) error {
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems have no such thing
		return err
	}
	return nil
}

// QEMU locks bytes of an image that lie in this range (block/file-posix.c), for reading.
const (
	firstLockByte = 100
	lockBytes     = 200

	ofdGetLock = 36 // F_OFD_GETLK (fcntl(2))
)

// LockImage locks an image until f and its copies are closed: for this user alone, or shared with others that only
// read. The error says who uses the image.
func LockImage(f *os.File, shared bool) error {
	how := syscall.LOCK_EX | syscall.LOCK_NB
	if shared {
		how = syscall.LOCK_SH | syscall.LOCK_NB
	}
	switch err := syscall.Flock(int(f.Fd()), how); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errors.New("another program has it locked")
	case err != nil && !errors.Is(err, syscall.ENOLCK) && !errors.Is(err, syscall.EOPNOTSUPP): // some network file systems
		return err
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: firstLockByte, Len: lockBytes}
	if !shared && syscall.FcntlFlock(f.Fd(), ofdGetLock, &lock) == nil && lock.Type != syscall.F_UNLCK {
		return errors.New("a virtual machine of QEMU has it")
	}
	if loop := loopOf(f); loop != "" && !shared {
		return fmt.Errorf("it is mounted or attached as %s (losetup)", loop)
	}
	return nil
}

// loopOf returns the loop device of the host that a file is attached to, or an empty string.
func loopOf(f *os.File) string {
	st, err := f.Stat()
	if err != nil {
		return ""
	}
	names, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, name := range names {
		path, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if other, err := os.Stat(strings.TrimSpace(string(path))); err == nil && os.SameFile(st, other) {
			return "/dev/" + strings.Split(name, "/")[3]
		}
	}
	return ""
}
