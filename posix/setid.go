package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// keepSafe removes the attributes by which a file runs with the rights of its owner: the set-user-ID bit, the set-group-ID
// bit of an executable file, and file capabilities (write(2), inode(7)). A caller with CAP_FSETID keeps the bits. It is
// called before n bytes are written to the file.
func (p *Process) keepSafe(o *file.Description, n int) {
	if n == 0 || p.may(linux.CAP_FSETID) {
		return
	}
	if f, ok := o.File.(*treeFile); ok && f.Flags().MayWrite() {
		keepSafe(f.Place().Node)
	}
}

// keepSafe removes the set-user-ID bit, the set-group-ID bit and the file capabilities of a file.
func keepSafe(n fs.Node) {
	const groupExecute = 0o010
	a := n.Attr()
	if a.Mode.Type() != fs.Regular {
		return
	}
	mode := a.Mode &^ fs.SetUID
	if mode&groupExecute != 0 {
		mode &^= fs.SetGID
	}
	if mode != a.Mode {
		// the error is ignored: if the file system rejects the change, it also rejects the write
		n.Change(fs.Change{Fields: fs.SetMode, Mode: mode & fs.Permissions})
	}
	if x, ok := n.(fs.Attributed); ok && a.Mode&0o111 != 0 {
		x.RemoveXattr(fs.CapabilityXattr)
	}
}
