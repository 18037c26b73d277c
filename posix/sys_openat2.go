package posix

import (
	"cmp"
	"encoding/binary"
	"strings"

	"loam/abi/linux"
	"loam/fs"
)

// OpenHow is struct open_how of openat2(2).
type OpenHow linux.OpenHow

// MaxOpenHow is the maximum size of a struct open_how, in bytes.
const MaxOpenHow = 4096

// ParseOpenHow parses a struct open_how. Errors: EINVAL if it is too short; E2BIG if it is too long or
// has unknown fields that are not zero.
func ParseOpenHow(b []byte) (OpenHow, Errno) {
	switch {
	case len(b) < linux.SizeofOpenHow:
		return OpenHow{}, linux.EINVAL
	case len(b) > MaxOpenHow || strings.Trim(string(b[linux.SizeofOpenHow:]), "\x00") != "":
		return OpenHow{}, linux.E2BIG
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	return OpenHow{word(0), word(1), word(2)}, 0
}

const (
	allResolve   = 0x3f
	tempFile     = 0o20200000 // value of O_TMPFILE without O_DIRECTORY
	allOpenFlags = linux.O_ACCMODE | linux.O_CREAT | linux.O_EXCL | linux.O_NOCTTY | linux.O_TRUNC | linux.O_APPEND |
		linux.O_NONBLOCK | linux.O_SYNC | linux.O_ASYNC | linux.O_DIRECT | 0o100000 | linux.O_DIRECTORY |
		linux.O_NOFOLLOW | linux.O_NOATIME | linux.O_CLOEXEC | int(fs.PathOnly) | tempFile
)

// check rejects arguments that openat(2) would ignore. Errors: EINVAL; EAGAIN for RESOLVE_CACHED with a
// call that creates or truncates a file.
func (h OpenHow) check() Errno {
	const both = uint64(fs.Beneath | fs.InRoot)
	flags := int(h.Flags)
	makes := flags&linux.O_CREAT != 0 || flags&tempFile == tempFile
	switch {
	case h.Flags&^uint64(allOpenFlags) != 0, h.Resolve&^allResolve != 0, h.Resolve&both == both:
		return linux.EINVAL
	case h.Mode != 0 && !makes, h.Mode > 0o7777:
		return linux.EINVAL
	case flags&int(fs.PathOnly) != 0 && flags&^(int(fs.PathOnly)|linux.O_DIRECTORY|linux.O_NOFOLLOW|linux.O_CLOEXEC) != 0:
		return linux.EINVAL
	case h.Resolve&linux.RESOLVE_CACHED != 0 && (makes || flags&linux.O_TRUNC != 0):
		return linux.EAGAIN
	}
	return 0
}

// OpenAt2 implements openat2(2). With Beneath or InRoot, a link in /proc to a descriptor is followed by
// its text, and not to the descriptor's file. With other restrictions only, such a link fails (ELOOP, EXDEV).
func (p *Process) OpenAt2(dirfd int, path string, how OpenHow) (int, Errno) {
	if errno := how.check(); errno != 0 {
		return -1, errno
	}
	bounds := fs.Resolve(how.Resolve &^ linux.RESOLVE_CACHED)
	if bounds == 0 {
		return p.OpenAt(dirfd, path, int(how.Flags), uint32(how.Mode))
	}
	if !p.hasRoom(int(how.Flags)) {
		return -1, linux.EMFILE
	}
	if _, magic := p.descriptorIn(path); magic && bounds&(fs.Beneath|fs.InRoot) == 0 && how.Flags&linux.O_NOFOLLOW == 0 {
		if bounds == fs.NoCrossing {
			return -1, linux.EXDEV
		}
		return -1, linux.ELOOP
	}
	if bounds&fs.InRoot != 0 && strings.HasPrefix(path, "/") {
		path = cmp.Or(strings.TrimLeft(path, "/"), ".") // an absolute path begins at dirfd, too
	}
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return -1, errno
	}
	return p.openIn(v.Within(at, bounds), at, path, int(how.Flags), uint32(how.Mode))
}
