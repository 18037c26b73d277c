package posix

import (
	"encoding/binary"
	"strings"
	"syscall"

	"loam/fs"
)

// OpenHow is struct open_how of openat2(2).
type OpenHow struct{ Flags, Mode, Resolve uint64 }

// Sizes of one in bytes: what the first Linux that has the call wants, and what it looks at.
const (
	sizeOpenHow = 24
	MaxOpenHow  = 4096
)

// ParseOpenHow reads one. Errors: EINVAL if it is too short; E2BIG if it says more than is
// known here.
func ParseOpenHow(b []byte) (OpenHow, Errno) {
	switch {
	case len(b) < sizeOpenHow:
		return OpenHow{}, syscall.EINVAL
	case len(b) > MaxOpenHow || strings.Trim(string(b[sizeOpenHow:]), "\x00") != "":
		return OpenHow{}, syscall.E2BIG
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	return OpenHow{word(0), word(1), word(2)}, 0
}

const (
	resolveCached = 0x20
	allResolve    = 0x3f
	tempFile      = 0o20200000 // O_TMPFILE
	allOpenFlags  = syscall.O_ACCMODE | syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOCTTY | syscall.O_TRUNC | syscall.O_APPEND |
		syscall.O_NONBLOCK | syscall.O_SYNC | syscall.O_ASYNC | syscall.O_DIRECT | 0o100000 | syscall.O_DIRECTORY |
		syscall.O_NOFOLLOW | syscall.O_NOATIME | syscall.O_CLOEXEC | int(fs.PathOnly) | tempFile
)

// check refuses what openat(2) would overlook. Errors: EINVAL; EAGAIN where a file that is to
// be made is not to be waited for.
func (h OpenHow) check() Errno {
	const both = uint64(fs.Beneath | fs.InRoot)
	flags := int(h.Flags)
	makes := flags&syscall.O_CREAT != 0 || flags&tempFile == tempFile
	switch {
	case h.Flags&^uint64(allOpenFlags) != 0, h.Resolve&^allResolve != 0, h.Resolve&both == both:
		return syscall.EINVAL
	case h.Mode != 0 && !makes, h.Mode > 0o7777:
		return syscall.EINVAL
	case flags&int(fs.PathOnly) != 0 && flags&^(int(fs.PathOnly)|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC) != 0:
		return syscall.EINVAL
	case h.Resolve&resolveCached != 0 && (makes || flags&syscall.O_TRUNC != 0):
		return syscall.EAGAIN
	}
	return 0
}

// OpenAt2 is openat2(2). A link of /proc to a descriptor is followed as its text says, where
// the walk has bounds.
func (p *Process) OpenAt2(dirfd int, path string, how OpenHow) (int, Errno) {
	if errno := how.check(); errno != 0 {
		return -1, errno
	}
	bounds := fs.Resolve(how.Resolve &^ resolveCached)
	if bounds == 0 {
		return p.OpenAt(dirfd, path, int(how.Flags), uint32(how.Mode))
	}
	scoped := bounds&(fs.Beneath|fs.InRoot) != 0
	if _, magic := p.descriptorIn(path); magic && !scoped && how.Flags&syscall.O_NOFOLLOW == 0 {
		if bounds == fs.NoCrossing {
			return -1, syscall.EXDEV
		}
		return -1, syscall.ELOOP
	}
	from := path
	if scoped {
		from = strings.TrimLeft(path, "/") // an absolute path begins there, too
	}
	v, at, errno := p.at(dirfd, from)
	if errno != 0 {
		return -1, errno
	}
	f, err := v.Within(at, bounds).Open(at, path, fs.Flags(how.Flags), fs.Mode(how.Mode))
	if err != nil {
		return -1, toErrno(err)
	}
	return p.installTree(&treeFile{File: f, p: p, from: at, path: openedAs(from, f, int(how.Flags))}, int(how.Flags))
}
