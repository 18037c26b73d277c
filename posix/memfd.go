package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Limits of memfd_create(2).
const (
	maxMemfdName = fs.MaxName - len("memfd:")
	memfdMode    = 0o777
)

// MemfdCreate implements memfd_create(2). Errors: EINVAL, also for huge pages and for flags added after
// Linux 6.2; ENOSPC.
func (p *Process) MemfdCreate(name string, flags int) (int, Errno) {
	if flags&^(linux.MFD_CLOEXEC|linux.MFD_ALLOW_SEALING) != 0 || len(name) > maxMemfdName {
		return -1, linux.EINVAL
	}
	f, err := p.sight().OpenNameless(memfdMode)
	if err != nil {
		return -1, file.ToErrno(err)
	}
	if flags&linux.MFD_ALLOW_SEALING == 0 {
		f.AddSeals(fs.SealSeals)
	}
	t := &treeFile{p: p, path: "/memfd:" + name + " (deleted)"}
	return p.installTree(t, &f.Opening, linux.O_RDWR, flags&linux.MFD_CLOEXEC != 0)
}

// seals implements F_ADD_SEALS and F_GET_SEALS. Errors: EINVAL, EPERM, EBUSY.
func seals(o *file.Description, cmd, arg int) (int, Errno) {
	f, ok := o.File.(*treeFile)
	if !ok {
		return -1, linux.EINVAL
	}
	if cmd == linux.F_ADD_SEALS {
		err := f.AddSeals(fs.Seals(arg))
		return 0, file.ToErrno(err)
	}
	s, err := f.Seals()
	return int(s), file.ToErrno(err)
}
