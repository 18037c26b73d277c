package fs

import "syscall"

// Making, moving and removing names. Each call walks to the directory of the
// last name, checks that the caller may change it, and leaves the rest to the
// file system.

// room checks that v may add or remove names in the directory of t.
func (v *View) room(t target) (Directory, error) {
	dir, err := t.dir.directory()
	if err != nil {
		return nil, err
	}
	if err := t.dir.writable(); err != nil {
		return nil, err
	}
	if !v.Who.May(dir.Attr(), ToWrite|ToExecute) {
		return nil, syscall.EACCES
	}
	return dir, nil
}

// place is where something new is to be made: errors EEXIST, and ENOENT for a
// name with a slash behind it unless it is to be a directory.
func (v *View) vacant(at Place, path string, wantDir bool) (target, Directory, error) {
	t, err := v.walk(at, path, never)
	switch {
	case err != nil:
		return t, nil, err
	case t.exists():
		return t, nil, syscall.EEXIST
	case t.slash && !wantDir:
		return t, nil, syscall.ENOENT
	}
	dir, err := v.room(t)
	return t, dir, err
}

// makeIn makes a file of v's.
func (v *View) makeIn(dir Directory, name string, mode Mode, d Device) (Node, error) {
	mode, owner := v.newIn(dir, mode)
	return dir.Make(name, mode, owner, d)
}

// newIn is the mode and the owner of a new file of v's: less its umask, and with the group of a
// directory that has the set-group-ID bit (inode(7)).
func (v *View) newIn(dir Directory, mode Mode) (Mode, Owner) {
	owner := Owner{v.Who.UID, v.Who.GID}
	mode &^= v.Umask & 0o777
	if a := dir.Attr(); a.Mode&SetGID != 0 {
		owner.GID = a.GID
		if mode.Type() == Dir {
			mode |= SetGID
		}
	}
	return mode, owner
}

// made tells of what was made, if it was.
func (v *View) made(dir Directory, name string) func(Node, error) error {
	return func(n Node, err error) error {
		if err == nil {
			v.Tree.tellName(dir, name, n, Created)
		}
		return err
	}
}

// Mkdir is mkdirat(2).
func (v *View) Mkdir(at Place, path string, mode Mode) error {
	t, dir, err := v.vacant(at, path, true)
	if err != nil {
		return err
	}
	return v.made(dir, t.name)(v.makeIn(dir, t.name, Dir|mode&(0o777|Sticky), Device{}))
}

// Mknod is mknodat(2): regular files, FIFOs, sockets, and for user 0 devices.
func (v *View) Mknod(at Place, path string, mode Mode, d Device) error {
	if mode.Type() == 0 {
		mode |= Regular
	}
	switch mode.Type() {
	case Regular, Fifo, Socket, CharDevice, BlockDevice:
	case Dir:
		return syscall.EPERM
	default:
		return syscall.EINVAL
	}
	t, dir, err := v.vacant(at, path, false)
	if err != nil {
		return err
	}
	if kind := mode.Type(); v.Who.UID != 0 && (kind == CharDevice || kind == BlockDevice) {
		return syscall.EPERM
	}
	return v.made(dir, t.name)(v.makeIn(dir, t.name, mode&(TypeMask|Permissions), d))
}

// Symlink is symlinkat(2).
func (v *View) Symlink(text string, at Place, path string) error {
	switch {
	case text == "":
		return syscall.ENOENT
	case len(text) >= MaxPath:
		return syscall.ENAMETOOLONG
	}
	t, dir, err := v.vacant(at, path, false)
	if err != nil {
		return err
	}
	return v.made(dir, t.name)(dir.Symlink(t.name, text, Owner{v.Who.UID, v.Who.GID}))
}

// Readlink is readlinkat(2).
func (v *View) Readlink(at Place, path string) (string, error) {
	p, err := v.Lookup(at, path, false)
	if err != nil {
		return "", err
	}
	link, ok := p.Node.(Link)
	if !ok {
		return "", syscall.EINVAL
	}
	return link.Target()
}

// Link is linkat(2): one more name for the file old. Whoever may neither own nor
// read and write a file may not link to it (protected_hardlinks of proc(5)).
func (v *View) Link(old Place, at Place, path string) error {
	t, dir, err := v.vacant(at, path, false)
	if err != nil {
		return err
	}
	a := old.Node.Attr()
	kind := a.Mode.Type()
	switch {
	case t.dir.mount != old.mount:
		return syscall.EXDEV
	case kind == Dir:
		return syscall.EPERM
	case !v.Who.owns(a) && !(kind == Regular && v.Who.May(a, ToRead|ToWrite)):
		return syscall.EPERM
	}
	if err := dir.Link(t.name, old.Node); err != nil {
		return err
	}
	v.Tree.tellLinks(old.Node)
	v.Tree.tellName(dir, t.name, old.Node, Created)
	return nil
}

// leaving checks that v may take the last name of t away.
func (v *View) leaving(t target) (Directory, error) {
	if !t.exists() {
		return nil, syscall.ENOENT
	}
	dir, err := v.room(t)
	if err != nil {
		return nil, err
	}
	if !v.Who.mayRemove(dir.Attr(), t.place.Node.Attr()) {
		return nil, syscall.EPERM
	}
	if t.place.mount != t.dir.mount {
		return nil, syscall.EBUSY
	}
	return dir, nil
}

// Unlink is unlinkat(2).
func (v *View) Unlink(at Place, path string) error {
	t, err := v.walk(at, path, never)
	switch {
	case err != nil:
		return err
	case t.last != named:
		return syscall.EISDIR
	}
	dir, err := v.leaving(t)
	if err != nil {
		return err
	}
	if t.slash {
		_, err := t.place.directory()
		if err == nil {
			err = syscall.EISDIR
		}
		return err
	}
	if err = dir.Unlink(t.name); err == nil {
		v.Tree.tellRemoved(dir, t.name, t.place.Node)
	}
	return err
}

// Rmdir is unlinkat(2) with AT_REMOVEDIR.
func (v *View) Rmdir(at Place, path string) error {
	t, err := v.walk(at, path, never)
	switch {
	case err != nil:
		return err
	case t.last == dot:
		return syscall.EINVAL
	case t.last == dotDot:
		return syscall.ENOTEMPTY
	case t.last == root:
		return syscall.EBUSY
	}
	dir, err := v.leaving(t)
	if err != nil {
		return err
	}
	if err = dir.Rmdir(t.name); err == nil {
		v.Tree.tellRemoved(dir, t.name, t.place.Node)
	}
	return err
}

// Rename is renameat2(2).
func (v *View) Rename(at Place, path string, newAt Place, newPath string, flags RenameFlags) error {
	if flags&^(RenameNoReplace|RenameExchange) != 0 || flags == RenameNoReplace|RenameExchange {
		return syscall.EINVAL
	}
	from, err := v.walk(at, path, never)
	if err != nil {
		return err
	}
	to, err := v.walk(newAt, newPath, never)
	switch {
	case err != nil:
		return err
	case from.last != named || to.last != named:
		return syscall.EBUSY
	case from.dir.mount != to.dir.mount:
		return syscall.EXDEV
	}
	dir, err := v.leaving(from)
	if err != nil {
		return err
	}
	into, err := v.arriving(from, to, flags)
	if err != nil {
		return err
	}
	if err = dir.Rename(from.name, into, to.name, flags); err == nil {
		v.Tree.tellMoved(from, to, dir, into, flags)
	}
	return err
}

// arriving checks that v may put what from leads to at the last name of to.
func (v *View) arriving(from, to target, flags RenameFlags) (Directory, error) {
	_, isDir := from.place.Node.(Directory)
	switch {
	case to.exists() && flags&RenameNoReplace != 0:
		return nil, syscall.EEXIST
	case !to.exists() && flags&RenameExchange != 0:
		return nil, syscall.ENOENT
	case (from.slash || to.slash) && !isDir:
		return nil, syscall.ENOTDIR
	case isDir && from.dir != to.dir && !v.Who.May(from.place.Node.Attr(), ToWrite):
		return nil, syscall.EACCES // its ".." changes
	case to.exists():
		return v.leaving(to)
	}
	return v.room(to)
}
