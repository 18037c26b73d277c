package posix

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"loam/fs"
)

// Paths and what they lead to: openat, and where the *at calls begin.

// Values of the *at calls that package syscall lacks (fcntl(2)).
const (
	atFDCWD           = -100
	atSymlinkNoFollow = 0x100
	atRemoveDir       = 0x200
	atEaccess         = 0x200
	atSymlinkFollow   = 0x400
	atNoAutomount     = 0x800
	atEmptyPath       = 0x1000
	atStatxSync       = 0x6000 // AT_STATX_SYNC_TYPE
)

// statusFlags are what F_GETFL tells beside the access mode.
const statusFlags = syscall.O_ACCMODE | syscall.O_APPEND | syscall.O_NONBLOCK | syscall.O_SYNC |
	syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_NOATIME | int(fs.PathOnly|fs.TempFile)

// at is where a relative path begins. Errors: EBADF, ENOTDIR.
func (p *Process) at(dirfd int, path string) (*fs.View, fs.Place, Errno) {
	v := p.view.Load()
	if dirfd == atFDCWD || strings.HasPrefix(path, "/") {
		return v, v.Dir, 0
	}
	_, f, errno := p.tree(dirfd, syscall.ENOTDIR)
	if errno != 0 {
		return v, fs.Place{}, errno
	}
	return v, f.Place(), 0
}

// lookup finds a file by one of the *at calls. With AT_EMPTY_PATH and no path it
// is the one that dirfd leads to; and a path that names a descriptor leads where
// that leads, even if no other path does.
func (p *Process) lookup(dirfd int, path string, follow, mayBeEmpty bool) (*fs.View, fs.Place, Errno) {
	fd, named := p.descriptorIn(path)
	switch {
	case path == "" && mayBeEmpty && dirfd == atFDCWD:
		v := p.view.Load()
		return v, v.Dir, 0
	case path == "" && mayBeEmpty:
		fd, named = dirfd, true
		fallthrough
	case named && follow:
		_, f, errno := p.tree(fd, syscall.EINVAL)
		if errno != 0 {
			return nil, fs.Place{}, errno
		}
		return p.view.Load(), f.Place(), 0
	}
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return v, at, errno
	}
	place, err := v.Lookup(at, path, follow)
	return v, place, toErrno(err)
}

// descriptorIn finds the descriptor that a path of /proc/self/fd names
// (proc(5)), or one of the links of /dev to there.
func (p *Process) descriptorIn(path string) (int, bool) {
	if !strings.HasPrefix(path, "/proc/") && !strings.HasPrefix(path, "/dev/") {
		return 0, false
	}
	for i, name := range [...]string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if path == name {
			return i, true
		}
	}
	own := "/proc/" + strconv.Itoa(int(p.options.Credentials.PID)) + "/fd/"
	for _, dir := range [...]string{"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/", own} {
		if rest, ok := strings.CutPrefix(path, dir); ok {
			n, err := strconv.ParseUint(rest, 10, 31)
			return int(n), err == nil
		}
	}
	return 0, false
}

// terminalPath leads to the terminal of the process, if it has one (tty(4)).
const terminalPath = "/dev/tty"

// OpenAt is openat(2).
func (p *Process) OpenAt(dirfd int, path string, flags int, mode uint32) (int, Errno) {
	if fd, ok := p.descriptorIn(path); ok && flags&syscall.O_NOFOLLOW == 0 {
		return p.openAgain(fd, flags)
	}
	if path == terminalPath {
		return p.openTerminal(flags)
	}
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return -1, errno
	}
	f, err := v.Open(at, path, fs.Flags(flags), fs.Mode(mode))
	if err == syscall.ENXIO {
		if place, err := v.Lookup(at, path, true); err == nil && place.Node.Attr().Mode.Type() == fs.Fifo {
			return p.openFIFO(place.Node, flags)
		}
	}
	if err != nil {
		p.missed(at, path, toErrno(err))
		return -1, toErrno(err)
	}
	return p.installTree(&treeFile{File: f, p: p, from: at, path: openedAs(path, f, flags)}, flags)
}

// openedAs is the path of a file that was opened by a path, which with O_TMPFILE is of the directory.
func openedAs(path string, f *fs.File, flags int) string {
	if flags&int(fs.TempFile|fs.PathOnly) != int(fs.TempFile) {
		return path
	}
	return fmt.Sprintf("%s/#%d (deleted)", strings.TrimRight(path, "/"), f.Attr().Inode)
}

// missed tells whoever wants to know that a file was not there.
func (p *Process) missed(at fs.Place, path string, errno Errno) {
	if p.options.Missed == nil || errno != syscall.ENOENT {
		return
	}
	p.options.Missed(p.absolute(at, path))
}

// absolute is a path from the root, as far as that can be told.
func (p *Process) absolute(at fs.Place, path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	dir, err := p.view.Load().Path(at)
	if err != nil {
		return path
	}
	return strings.TrimSuffix(dir, "/") + "/" + path
}

// installTree gives a file of the tree its first descriptor.
func (p *Process) installTree(f *treeFile, flags int) (int, Errno) {
	return p.installWith(f, flags&statusFlags, flags&syscall.O_CLOEXEC != 0)
}

// openAgain opens what a descriptor leads to once more. A file of the tree gets
// an offset of its own; another is shared, as by dup(2).
func (p *Process) openAgain(fd, flags int) (int, Errno) {
	o := p.fds.get(fd)
	if o == nil {
		return -1, syscall.ENOENT
	}
	switch f := o.file.(type) {
	case *treeFile:
		again, err := p.view.Load().OpenPlace(f.Place(), fs.Flags(flags))
		if err != nil {
			return -1, toErrno(err)
		}
		return p.installTree(&treeFile{File: again, p: p, from: f.from, path: f.path}, flags)
	case socket:
		return -1, syscall.ENXIO
	}
	return p.dupAbove(fd, 0, flags&syscall.O_CLOEXEC != 0)
}

// termiosSize is the size of the kernel's struct termios, in bytes.
const termiosSize = 36

// openTerminal opens the terminal that one of the standard streams is. However often it is
// opened, there is one queue of what is typed.
func (p *Process) openTerminal(flags int) (int, Errno) {
	for _, s := range p.streams {
		if s != nil && s.host.Ioctl(syscall.TCGETS, make([]byte, termiosSize)) == 0 {
			return p.installWith(s, flags&statusFlags, flags&syscall.O_CLOEXEC != 0)
		}
	}
	return -1, syscall.ENXIO
}
