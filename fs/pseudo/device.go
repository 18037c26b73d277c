package pseudo

import (
	"crypto/rand"
	"errors"
	iofs "io/fs"

	"loam/abi/linux"
	"loam/fs"
)

// Devices without hardware: those of mem(4), and random(4).

// Major numbers: of these devices, and of the terminals that have names of their own.
const (
	memory   = 1
	terminal = 5
)

// Devices creates the files of /dev, and registers the drivers. Files that exist already, such as files of the user's own
// root folder, stay. v must be a view of user 0.
func Devices(v *fs.View) error {
	for _, d := range []struct {
		name  string
		minor uint32
		open  func() fs.Handle
	}{
		{"null", 3, func() fs.Handle { return &null{} }},
		{"zero", 5, func() fs.Handle { return &zero{} }},
		{"full", 7, func() fs.Handle { return &full{} }},
		{"random", 8, func() fs.Handle { return &random{} }},
		{"urandom", 9, func() fs.Handle { return &random{} }},
	} {
		number := fs.Device{Major: memory, Minor: d.minor}
		v.Tree.AddDevice(fs.CharDevice, number, func(fs.Flags) (fs.Handle, error) { return d.open(), nil })
		if err := unlessExists(v.Mknod(v.Root, "/dev/"+d.name, fs.CharDevice|0o666, number)); err != nil {
			return err
		}
	}
	for _, d := range []struct { // opened by package posix, which has the terminals
		name  string
		mode  fs.Mode
		minor uint32
	}{{"tty", 0o666, 0}, {"console", 0o600, 1}, {"ptmx", 0o666, 2}} {
		number := fs.Device{Major: terminal, Minor: d.minor}
		if err := unlessExists(v.Mknod(v.Root, "/dev/"+d.name, fs.CharDevice|d.mode, number)); err != nil {
			return err
		}
	}
	for _, l := range [][2]string{
		{"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"},
		{"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
	} {
		if err := unlessExists(v.Symlink(l[0], v.Root, l[1])); err != nil {
			return err
		}
	}
	return nil
}

// unlessExists returns err, or nil if a file exists already.
func unlessExists(err error) error {
	if errors.Is(err, iofs.ErrExist) {
		return nil
	}
	return err
}

// null discards writes and is always at its end. The other devices embed it. The methods have pointer
// receivers, because value receivers would be called through a wrapper function.
type null struct{}

// ReadAt implements fs.Handle.
func (*null) ReadAt([]byte, int64) (int, error) { return 0, nil }

// WriteAt implements fs.Handle.
func (*null) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// Append implements fs.Handle.
func (*null) Append(p []byte) (int, int64, error) { return len(p), 0, nil }

// Endless implements fs.Endless.
func (*null) Endless() {}

// Discards implements fs.Endless.
func (*null) Discards() bool { return true }

// Immediate implements fs.Immediate.
func (*null) Immediate() {}

// Sync implements fs.Handle.
func (*null) Sync() error { return linux.EINVAL }

// Close implements fs.Handle.
func (*null) Close() error { return nil }

// zero returns zeros without end.
type zero struct{ null }

// ReadAt implements fs.Handle.
func (*zero) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// full is a zero device without room for writes (full(4)).
type full struct{ zero }

// WriteAt implements fs.Handle.
func (*full) WriteAt([]byte, int64) (int, error) { return 0, linux.ENOSPC }

// Discards implements fs.Endless.
func (*full) Discards() bool { return false }

// Append implements fs.Handle.
func (*full) Append([]byte) (int, int64, error) { return 0, 0, linux.ENOSPC }

// random returns random bytes without end.
type random struct{ null }

// ReadAt implements fs.Handle.
func (*random) ReadAt(p []byte, _ int64) (int, error) {
	rand.Read(p) // never fails
	return len(p), nil
}

// Discards implements fs.Endless. As on Linux, a write reads the memory of the process.
func (*random) Discards() bool { return false }

// entropy is the number of bits that Linux's generator has once it is initialized. It never changes.
const entropy = 256

// Entropy returns the number of bits of RNDGETENTCNT (random(4)).
func (*random) Entropy() int { return entropy }
