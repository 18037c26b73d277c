package imagefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"loam/abi/linux"
)

// QEMU locks bytes of an image in this range, for reading (its block/file-posix.c).
const (
	firstLockByte = 100
	lockBytes     = 200
)

// Lock locks an image until f and its copies are closed. If shared is set, other programs that only read can lock
// the image too. The error says which program uses the image.
func Lock(f *os.File, shared bool) error {
	how := linux.LOCK_EX | linux.LOCK_NB
	if shared {
		how = linux.LOCK_SH | linux.LOCK_NB
	}
	switch err := syscall.Flock(int(f.Fd()), how); {
	case errors.Is(err, linux.EAGAIN):
		return errors.New("another program has it locked")
	// some network file systems do not support locks
	case err != nil && !errors.Is(err, linux.ENOLCK) && !errors.Is(err, linux.EOPNOTSUPP):
		return err
	}
	lock := syscall.Flock_t{Type: linux.F_WRLCK, Start: firstLockByte, Len: lockBytes}
	if !shared && syscall.FcntlFlock(f.Fd(), linux.F_OFD_GETLK, &lock) == nil && lock.Type != linux.F_UNLCK {
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
