package posix

import (
	"encoding/binary"
	"fmt"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/socket"
)

// Calls that change the root, the working directory or the umask, and calls that list directories.

// look replaces the process's view of the file tree by a copy that the function change
// has modified.
func (p *Process) look(change func(v *fs.View)) {
	p.viewMu.Lock()
	defer p.viewMu.Unlock()
	v := *p.view.Load()
	change(&v)
	p.view.Store(&v)
}

// Chdir implements chdir(2) for the whole process. Errors: those of fs.View.LookupDir.
func (p *Process) Chdir(path string) Errno {
	v := p.sight()
	dir, err := v.LookupDir(v.Dir, path)
	if err != nil {
		return file.ToErrno(err)
	}
	p.look(func(v *fs.View) { v.Dir = dir })
	return 0
}

// Fchdir implements fchdir(2). Errors: EBADF, ENOTDIR, EACCES.
func (p *Process) Fchdir(fd int) Errno {
	_, f, errno := p.tree(fd, linux.ENOTDIR)
	if errno != 0 {
		return errno
	}
	a := f.Attr()
	switch {
	case a.Mode.Type() != fs.Dir:
		return linux.ENOTDIR
	case !p.sight().Who.May(a, fs.ToExecute):
		return linux.EACCES
	}
	p.look(func(v *fs.View) { v.Dir = f.Place() })
	return 0
}

// Chroot implements chroot(2). Errors: those of fs.View.LookupDir; EPERM without CAP_SYS_CHROOT.
func (p *Process) Chroot(path string) Errno {
	v := p.sight()
	dir, err := v.LookupDir(v.Dir, path)
	switch {
	case err != nil:
		return file.ToErrno(err)
	case !p.may(linux.CAP_SYS_CHROOT):
		return linux.EPERM
	}
	p.look(func(v *fs.View) { v.Root = dir })
	return 0
}

// Getcwd implements getcwd(2). Errors: ENOENT if the directory has been removed.
func (p *Process) Getcwd() (string, Errno) {
	v := p.sight()
	path, err := v.Path(v.Dir)
	return path, file.ToErrno(err)
}

// Umask implements umask(2). Only the permission bits of mask are used. It returns the previous mask.
func (p *Process) Umask(mask uint32) (old uint32) {
	p.look(func(v *fs.View) {
		old = uint32(v.Umask)
		v.Umask = fs.Mode(mask) & 0o777
	})
	return old
}

// direntHeader is the size of struct linux_dirent64 without its name.
const direntHeader = 19

// Getdents implements getdents64(2). It fills b with as many entries as fit. Errors: EINVAL if the
// first entry does not fit.
func (p *Process) Getdents(fd int, b []byte) (int, Errno) {
	f, errno := p.real(fd, linux.ENOTDIR)
	if errno != 0 {
		return -1, errno
	}
	n, full := 0, false
	err := f.ReadDir(func(e fs.Entry) bool {
		size := (direntHeader + len(e.Name) + 1 + 7) &^ 7
		if full = n+size > len(b); full {
			return false
		}
		d := b[n : n+size]
		clear(d[direntHeader:])
		binary.NativeEndian.PutUint64(d, e.Inode)
		binary.NativeEndian.PutUint64(d[8:], e.Cursor)
		binary.NativeEndian.PutUint16(d[16:], uint16(size))
		d[18] = byte(e.Type >> 12) // the values of d_type (DT_DIR and others) are the file types of st_mode, shifted right by 12
		copy(d[direntHeader:], e.Name)
		n += size
		return true
	})
	switch {
	case err != nil:
		return -1, file.ToErrno(err)
	case full && n == 0:
		return -1, linux.EINVAL
	}
	return n, 0
}

// Name returns the target of the link /proc/self/fd/fd; empty if fd is not open.
func (p *Process) Name(fd int) string {
	name, _ := p.nameOf(fd)
	return name
}

// nameOf returns the target of /proc/self/fd/fd. Errors: ENOENT.
func (p *Process) nameOf(fd int) (string, Errno) {
	o := p.fds.Get(fd)
	if o == nil {
		return "", linux.ENOENT
	}
	switch f := o.File.(type) {
	case *treeFile:
		return p.pathOf(f), 0
	case socket.Socket:
		return fmt.Sprintf("socket:[%d]", o.Number(&p.serial)), 0
	case file.Named:
		return f.Name(), 0
	}
	return fmt.Sprintf("/dev/fd/%d", fd), 0
}

// pathOf returns the current path of a file of the file tree. If the file has none, it returns the path by which the file
// was opened.
func (p *Process) pathOf(f *treeFile) string {
	if path, err := p.sight().PathOf(&f.File); err == nil {
		return path
	}
	return p.absolute(f.from, f.path)
}

// Descriptors returns the open descriptors in ascending order, and Held the heap that they keep: see file.Table.
func (p *Process) Descriptors() []int { return p.fds.List() }
func (p *Process) Held() int64        { return p.fds.Held() }
