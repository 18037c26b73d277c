package posix

import (
	"fmt"
	"strings"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/posix/tty"
)

// Path lookup of the *at calls, and openat.

// statusFlags are the flags that F_GETFL returns: access mode and status flags.
const statusFlags = linux.O_ACCMODE | linux.O_APPEND | linux.O_NONBLOCK | linux.O_SYNC |
	linux.O_DIRECTORY | linux.O_NOFOLLOW | linux.O_NOATIME | int(fs.PathOnly|fs.TempFile)

// at returns the view of the file tree, and the directory to which path is relative: that of dirfd, or the working
// directory. Errors: EBADF, ENOTDIR, and ENOENT for an empty path.
func (p *Process) at(dirfd int, path string) (*fs.View, fs.Place, Errno) {
	v := p.sight()
	if dirfd == linux.AT_FDCWD || strings.HasPrefix(path, "/") {
		return v, v.Dir, 0
	}
	if path == "" {
		return v, fs.Place{}, linux.ENOENT
	}
	_, f, errno := p.tree(dirfd, linux.ENOTDIR)
	if errno != 0 {
		return v, fs.Place{}, errno
	}
	return v, f.Place(), 0
}

// lookup finds the file of an *at call. An empty path with AT_EMPTY_PATH means the file of dirfd
// itself. A path that names a descriptor, such as /proc/self/fd/3, leads to the descriptor's file even
// if that file has no other path.
func (p *Process) lookup(dirfd int, path string, follow, mayBeEmpty bool) (*fs.View, fs.Place, Errno) {
	fd, named := p.descriptorIn(path)
	switch {
	case path == "" && mayBeEmpty && dirfd == linux.AT_FDCWD:
		v := p.sight()
		return v, v.Dir, 0
	case path == "" && mayBeEmpty:
		fd, named = dirfd, true
		fallthrough
	case named && follow:
		if place, ok := p.terminalPlace(fd); ok {
			return p.sight(), place, 0
		}
		_, f, errno := p.tree(fd, linux.EINVAL)
		if errno != 0 {
			return nil, fs.Place{}, errno
		}
		return p.sight(), f.Place(), 0
	}
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return v, at, errno
	}
	place, err := v.Lookup(at, path, follow)
	return v, place, file.ToErrno(err)
}

// descriptorIn returns the number of the descriptor that a path names: see file.DescriptorIn.
func (p *Process) descriptorIn(path string) (int, bool) {
	return file.DescriptorIn(path, int(p.credentials.PID))
}

// terminalPath is the path of the process's terminal (tty(4)).
const terminalPath = "/dev/tty"

// hasRoom reports whether an open with these flags gets a descriptor. It is called first, so that an open that gets no
// descriptor neither creates nor truncates a file.
func (p *Process) hasRoom(flags int) bool {
	return flags&(linux.O_CREAT|linux.O_TRUNC) == 0 || !p.fds.Full(p.MostFiles())
}

// OpenAt implements openat(2). It opens FIFOs, the terminal, and links to descriptors in /proc/self/fd
// itself; fs.View.Open opens all other files. Opening a FIFO may block. Errors: those of fs.View.Open,
// EBADF, ENXIO, EMFILE.
func (p *Process) OpenAt(dirfd int, path string, flags int, mode uint32) (int, Errno) {
	if !p.hasRoom(flags) {
		return -1, linux.EMFILE
	}
	if fd, ok := p.descriptorIn(path); ok && flags&linux.O_NOFOLLOW == 0 {
		return p.openAgain(fd, flags)
	}
	if path == terminalPath && p.member == nil && p.terminals.Controlling(caller{p}) == nil {
		return p.openTerminal(flags)
	}
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return -1, errno
	}
	return p.openIn(v, at, path, flags, mode)
}

// openIn opens a file in a view. The path is relative to a directory (the parameter at).
func (p *Process) openIn(v *fs.View, at fs.Place, path string, flags int, mode uint32) (int, Errno) {
	var o fs.Opening
	err := v.OpenTo(&o, at, path, fs.Flags(flags), fs.Mode(mode))
	switch err {
	case nil:
		return p.installTree(&treeFile{p: p, from: at, path: openedAs(path, &o, flags)}, &o, flags, flags&linux.O_CLOEXEC != 0)
	case linux.ENXIO:
		return p.openSpecial(v, at, path, flags)
	}
	p.reportMissed(at, path, file.ToErrno(err))
	again, errno := p.endLease(err, flags)
	if again {
		return p.openIn(v, at, path, flags, mode)
	}
	return -1, errno
}

// openSpecial opens a file that fs.View.Open leaves to its caller. It checks the permissions again, because another file may be there now.
func (p *Process) openSpecial(v *fs.View, at fs.Place, path string, flags int) (int, Errno) {
	place, err := v.Openable(at, path, fs.Flags(flags))
	if err != nil {
		return -1, file.ToErrno(err)
	}
	if n, ok := place.Node.(openNode); ok {
		return p.openDescribed(n.open, flags)
	}
	switch place.Node.Attr().Mode.Type() {
	case fs.Fifo:
		return p.openFIFO(place.Node, flags)
	case fs.CharDevice:
		return p.openTerminalDevice(place, p.absolute(at, path), flags)
	}
	return -1, linux.ENXIO
}

// openedAs returns the path to record for an opened file. With O_TMPFILE, path is only the directory.
func openedAs(path string, o *fs.Opening, flags int) string {
	if flags&int(fs.TempFile|fs.PathOnly) != int(fs.TempFile) {
		return path
	}
	return fmt.Sprintf("%s/#%d (deleted)", strings.TrimRight(path, "/"), o.Place().Node.Attr().Inode)
}

// reportMissed calls Options.Missed if a file was not found.
func (p *Process) reportMissed(at fs.Place, path string, errno Errno) {
	if p.missed == nil || errno != linux.ENOENT {
		return
	}
	p.missed(p.absolute(at, path))
}

// absolute returns path, which is relative to a directory (at), as a path from the root.
// It returns path unchanged if the path of that directory is unknown.
func (p *Process) absolute(at fs.Place, path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	dir, err := p.sight().Path(at)
	if err != nil {
		return path
	}
	return strings.TrimSuffix(dir, "/") + "/" + path
}

// installTree makes f the file of the tree that an open has opened, and allocates a descriptor for it. On error, it closes the file.
func (p *Process) installTree(f *treeFile, o *fs.Opening, flags int, cloexec bool) (int, Errno) {
	if flags&linux.O_DIRECT != 0 {
		p.direct.Store(true)
	}
	f.File.Init(o)
	file.Alert(&f.File, &f.q)
	f.about.Init(f, flags&(statusFlags|linux.O_DIRECT))
	return p.insert(&f.about, cloexec)
}

// openAgain opens the file behind a descriptor again. A file of the tree gets its own offset. Other
// files are shared, as by dup(2).
func (p *Process) openAgain(fd, flags int) (int, Errno) {
	o := p.fds.Get(fd)
	if o == nil {
		return -1, linux.ENOENT
	}
	switch f := o.File.(type) {
	case *treeFile:
		again, err := p.sight().OpenPlace(f.Place(), fs.Flags(flags))
		if err != nil {
			repeat, errno := p.endLease(err, flags)
			if repeat {
				return p.openAgain(fd, flags)
			}
			return -1, errno
		}
		return p.installTree(&treeFile{p: p, from: f.from, path: f.path}, &again.Opening, flags, flags&linux.O_CLOEXEC != 0)
	case *tty.Slave:
		return p.openSlave(f.Of(), f.Place(), f.Path(), flags)
	case socket.Socket:
		return -1, linux.ENXIO
	}
	return p.dupAbove(fd, 0, flags&linux.O_CLOEXEC != 0)
}

// openTerminal opens the terminal that is one of the standard streams. All descriptors of that terminal share the input that
// was read ahead.
func (p *Process) openTerminal(flags int) (int, Errno) {
	for _, s := range p.streams {
		if s != nil && s.host.Ioctl(linux.TCGETS, make([]byte, linux.SizeofTermios)) == 0 {
			return p.installWith(s, flags&statusFlags, flags&linux.O_CLOEXEC != 0)
		}
	}
	return -1, linux.ENXIO
}
