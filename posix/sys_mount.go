package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
)

// Methods for package task/mount, which implements mount(2) for Linux programs. Processes share their mounts, except after CopyMounts.

// Find returns the view of the file tree and the place of the file of an *at call. follow says whether a symbolic link at the end of the
// path is followed. An empty path with mayBeEmpty means the file of dirfd. Errors: those of paths, EBADF.
func (p *Process) Find(dirfd int, path string, follow, mayBeEmpty bool) (*fs.View, fs.Place, Errno) {
	return p.lookup(dirfd, path, follow, mayBeEmpty)
}

// May reports whether the caller has a capability.
func (p *Process) May(capability int) bool { return p.may(capability) }

// Install allocates a descriptor for a new file that can be read and written. Errors: EMFILE.
func (p *Process) Install(f file.File, cloexec bool) (int, Errno) {
	return p.installWith(f, linux.O_RDWR, cloexec)
}

// InstallPlace allocates a descriptor for a place, as open(2) with flags does. Errors: EMFILE, EACCES.
func (p *Process) InstallPlace(at fs.Place, flags fs.Flags, cloexec bool) (int, Errno) {
	f, err := p.sight().OpenPlace(at, flags)
	if err != nil {
		return -1, file.ToErrno(err)
	}
	return p.installTree(&treeFile{p: p, from: at}, &f.Opening, int(flags), cloexec)
}

// NewMemory returns a file system in memory.
func (p *Process) NewMemory(c memfs.Config) *memfs.FileSystem {
	if p.System.newMemoryFS == nil {
		return memfs.New(c)
	}
	return p.System.newMemoryFS(c)
}

// Mounted returns the mounts that processes have made, with their paths in the root of the process.
func (p *Process) Mounted() []fs.Mounted { return p.sight().Mounted() }

// EnterMounts moves the process to the mounts t, and its root and working directory to their root (setns(2)).
func (p *Process) EnterMounts(t *fs.Tree) {
	p.look(func(v *fs.View) { v.Tree, v.Root, v.Dir = t, t.Root(), t.Root() })
}

// CopyMounts gives the process mounts of its own (CLONE_NEWNS).
func (p *Process) CopyMounts() {
	p.look(func(v *fs.View) {
		tree, moved := v.Tree.Copy()
		v.Tree, v.Root, v.Dir = tree, moved(v.Root), moved(v.Dir)
	})
}
