package posix

import (
	"syscall"

	"loam/fs"
)

// Flags of memfd_create(2) and commands of fcntl(2) that package syscall lacks.
const (
	mfdCloexec      = 1
	mfdAllowSealing = 2
	fAddSeals       = 1033
	fGetSeals       = 1034

	maxMemfdName = fs.MaxName - len("memfd:")
	memfdMode    = 0o777
)

// MemfdCreate is memfd_create(2). Errors: EINVAL, also for huge pages and for what Linux has
// had since 6.3; ENOSPC.
func (p *Process) MemfdCreate(name string, flags int) (int, Errno) {
	if flags&^(mfdCloexec|mfdAllowSealing) != 0 || len(name) > maxMemfdName {
		return -1, syscall.EINVAL
	}
	f, err := p.view.Load().OpenNameless(memfdMode)
	if err != nil {
		return -1, toErrno(err)
	}
	if flags&mfdAllowSealing == 0 {
		f.AddSeals(fs.SealSeals)
	}
	t := &treeFile{File: f, p: p, path: "/memfd:" + name + " (deleted)"}
	return p.installWith(t, syscall.O_RDWR, flags&mfdCloexec != 0)
}

// seals is F_ADD_SEALS and F_GET_SEALS. Errors: EINVAL, EPERM, EBUSY.
func (o *open) seals(cmd, arg int) (int, Errno) {
	f, ok := o.file.(*treeFile)
	if !ok {
		return -1, syscall.EINVAL
	}
	if cmd == fAddSeals {
		err := f.AddSeals(fs.Seals(arg))
		return 0, toErrno(err)
	}
	s, err := f.Seals()
	return int(s), toErrno(err)
}
