package posix

import (
	"loam/abi/linux"
	"loam/posix/file"
)

// keepSafe calls clearSetIDs for a file of the file tree. It is called before n bytes are written to the file.
func (p *Process) keepSafe(o *file.Description, n int) {
	if f, ok := o.File.(*treeFile); ok && n > 0 {
		p.clearSetIDs(f)
	}
}

// clearSetIDs removes the set-user-ID bit, and the set-group-ID bit of an executable file (write(2), inode(7)). A caller with
// CAP_FSETID keeps the bits. Package fs removes file capabilities.
func (p *Process) clearSetIDs(f *treeFile) {
	if !p.may(linux.CAP_FSETID) && f.Flags().MayWrite() {
		f.ClearSetIDs()
	}
}
