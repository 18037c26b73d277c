package fs

import (
	"loam/abi/linux"
	"loam/fs/acl"
)

// Creating, renaming and removing names. Each call resolves the path up to the last name, checks
// permissions on the directory, and calls the file system.

// room checks that v may add or remove names in t's directory, and returns this directory.
func (v *View) room(t target) (Directory, error) {
	dir, err := t.dir.directory()
	if err != nil {
		return nil, err
	}
	if err := t.dir.writable(); err != nil {
		return nil, err
	}
	if !v.Who.May(t.dir.guard(dir), ToWrite|ToExecute) {
		return nil, linux.EACCES
	}
	return dir, nil
}

// vacant resolves the path of a file to be created, and returns the directory that will contain it. Errors:
// EEXIST; ENOENT for a trailing slash, unless a directory is to be created.
func (v *View) vacant(at Place, path string, wantDir bool) (target, Directory, error) {
	t, err := v.walk(at, path, never)
	switch {
	case err != nil:
		return t, nil, err
	case t.exists():
		return t, nil, linux.EEXIST
	case t.slash && !wantDir:
		return t, nil, linux.ENOENT
	}
	dir, err := v.room(t)
	return t, dir, err
}

// makeIn creates the file of a target, in its directory. The file is owned by v's user.
func (v *View) makeIn(t target, dir Directory, mode Mode, d Device) (Node, error) {
	mode, owner, err := v.newIn(t.dir, dir, mode)
	if err != nil {
		return nil, err
	}
	return dir.Make(t.name, mode, owner, d)
}

func (v *View) owner() Owner { return Owner{UID: v.Who.UID, GID: v.Who.GID} }

// ownerIn returns the owner of a new file in a directory with attributes a. In a directory with the set-group-ID bit, the file
// inherits the directory's group (inode(7)).
func (v *View) ownerIn(a Attr) Owner {
	owner := v.owner()
	if a.Mode&SetGID != 0 {
		owner.GID = a.GID
	}
	return owner
}

// setGroupIn returns the mode of a new file in a directory with attributes a and the set-group-ID bit. A new directory gets
// this bit too. A program does not get it: otherwise any user who may create files in the directory could act as its group.
func (v *View) setGroupIn(a Attr, mode Mode) Mode {
	const program = SetGID | 0o010
	switch {
	case mode.Type() == Dir:
		return mode | SetGID
	case mode&program == program && !v.Who.Has(KeepSetIDs) && !v.Who.inGroup(a.GID):
		return mode &^ SetGID
	}
	return mode
}

// newIn returns the mode and the owner of a new file. The umask applies, or the default list of the directory (acl(5)).
// Errors: EIO.
func (v *View) newIn(at Place, dir Directory, mode Mode) (Mode, Owner, error) {
	a := at.guard(dir)
	owner := v.ownerIn(a)
	if a.Mode&SetGID != 0 {
		mode = v.setGroupIn(a, mode)
	}
	inherited := a.ACL.Lists().Default
	switch inherited {
	case "":
		return mode &^ (v.Umask & 0o777), owner, nil
	case acl.Unreadable:
		return mode, owner, linux.EIO
	}
	bits, access := inherited.Create(uint16(mode & 0o777))
	if mode.Type() != Dir {
		inherited = ""
	}
	owner.ACL = acl.Lists{Access: access, Default: inherited}.Set()
	return mode&^0o777 | Mode(bits), owner, nil
}

// made returns a function that reports a created file to the watcher and passes on the error.
func (v *View) made(dir Directory, name string) func(Node, error) error {
	return func(n Node, err error) error {
		if err == nil {
			v.Tree.notifyName(dir, name, n, Created)
		}
		return err
	}
}

// Mkdir implements mkdirat(2). Errors: EEXIST, EACCES, EROFS, and those of path resolution and Directory.Make.
func (v *View) Mkdir(at Place, path string, mode Mode) error {
	t, dir, err := v.vacant(at, path, true)
	if err != nil {
		return err
	}
	return v.made(dir, t.name)(v.makeIn(t, dir, Dir|mode&(0o777|Sticky), Device{}))
}

// Mknod implements mknodat(2) for regular files, FIFOs, sockets and whiteouts, and for user 0 devices.
func (v *View) Mknod(at Place, path string, mode Mode, d Device) error {
	_, err := v.MakeNode(at, path, mode, d)
	return err
}

// MakeNode is like Mknod, and returns the new file. A second lookup of the path may find another file.
func (v *View) MakeNode(at Place, path string, mode Mode, d Device) (Node, error) {
	if mode.Type() == 0 {
		mode |= Regular
	}
	switch mode.Type() {
	case Regular, Fifo, Socket, CharDevice, BlockDevice:
	case Dir:
		return nil, linux.EPERM
	default:
		return nil, linux.EINVAL
	}
	t, dir, err := v.vacant(at, path, false)
	if err != nil {
		return nil, err
	}
	whiteout := mode.Type() == CharDevice && d == (Device{})
	if kind := mode.Type(); !v.Who.Has(MakeDevices) && (kind == CharDevice && !whiteout || kind == BlockDevice) {
		return nil, linux.EPERM
	}
	n, err := v.makeIn(t, dir, mode&(TypeMask|Permissions), d)
	return n, v.made(dir, t.name)(n, err)
}

// Symlink implements symlinkat(2).
func (v *View) Symlink(text string, at Place, path string) error {
	switch {
	case text == "":
		return linux.ENOENT
	case len(text) >= MaxPath:
		return linux.ENAMETOOLONG
	}
	t, dir, err := v.vacant(at, path, false)
	if err != nil {
		return err
	}
	return v.made(dir, t.name)(dir.Symlink(t.name, text, v.ownerIn(t.dir.guard(dir))))
}

// Readlink implements readlinkat(2).
func (v *View) Readlink(at Place, path string) (string, error) {
	p, err := v.Lookup(at, path, false)
	if err != nil {
		return "", err
	}
	link, ok := p.Node.(Link)
	if !ok {
		return "", linux.EINVAL
	}
	return v.TargetOf(link)
}

// Link implements linkat(2): it adds a name for an existing file (the parameter old). The caller must own the file, or
// be able to read and write it, and the file must not be a set-user-ID or set-group-ID program (protected_hardlinks of proc(5)).
func (v *View) Link(old Place, at Place, path string) error {
	t, dir, err := v.vacant(at, path, false)
	if err != nil {
		return err
	}
	a := old.Node.Attr()
	kind := a.Mode.Type()
	switch {
	case t.dir.mount != old.mount:
		return linux.EXDEV
	case kind == Dir:
		return linux.EPERM
	case !v.Who.Owns(a) && !(kind == Regular && withoutSetIDs(a.Mode, true) == a.Mode && v.Who.May(a, ToRead|ToWrite)):
		return linux.EPERM
	}
	if err := dir.Link(t.name, old.Node); err != nil {
		return err
	}
	v.Tree.notifyLinks(old.Node)
	v.Tree.notifyName(dir, t.name, old.Node, Created)
	return nil
}

// leaving checks that v may remove t's last name, and returns its directory.
func (v *View) leaving(t target) (Directory, error) {
	if !t.exists() {
		return nil, linux.ENOENT
	}
	dir, err := v.room(t)
	if err != nil {
		return nil, err
	}
	if !v.Who.mayRemove(t.dir.guard(dir), t.place.Node) {
		return nil, linux.EPERM
	}
	if t.place.mount != t.dir.mount {
		return nil, linux.EBUSY
	}
	return dir, nil
}

// Unlink implements unlinkat(2). Errors: EISDIR for a directory, EBUSY for a mount point, EPERM, EACCES, EROFS,
// and those of path resolution.
func (v *View) Unlink(at Place, path string) error {
	w := walker{View: v, target: target{dir: at}, glance: asked}
	err := w.resolve(path, never)
	if w.glance == stopped {
		if dir, ok := v.removable(w.target); ok {
			return v.strike(dir, w.name)
		}
		err = w.lookUp(never)
	}
	t := w.target
	switch {
	case err != nil:
		return err
	case t.last != named:
		return linux.EISDIR
	}
	dir, err := v.leaving(t)
	if err != nil {
		return err
	}
	if t.slash {
		_, err := t.place.directory()
		if err == nil {
			err = linux.EISDIR
		}
		return err
	}
	if err = dir.Unlink(t.name); err == nil {
		v.Tree.notifyRemoved(dir, t.name, t.place.Node)
	}
	return err
}

// removable returns the directory of a target at which a walk has stopped, if v may remove the name, and neither the checks
// nor a watcher need the file's node.
func (v *View) removable(t target) (Directory, bool) {
	dir, err := t.dir.directory()
	if err != nil || v.Tree.watcher.Load() != nil || !t.dir.mount.glance.Present(dir, t.name) || t.dir.writable() != nil {
		return nil, false
	}
	a := t.dir.guard(dir)
	return dir, a.Mode&Sticky == 0 && v.Who.May(a, ToWrite|ToExecute)
}

// strike removes the name of a file without a node. A watcher that was added meanwhile learns of the name, but not of the file.
func (v *View) strike(dir Directory, name string) error {
	err := dir.Unlink(name)
	if err == nil {
		v.Tree.notifyName(dir, name, nil, Removed)
	}
	return err
}

// Rmdir implements unlinkat(2) with AT_REMOVEDIR. Errors: EINVAL for ".", ENOTEMPTY also for "..", EBUSY for the
// root or a mount point, ENOTDIR, EPERM, EACCES, EROFS, and those of path resolution.
func (v *View) Rmdir(at Place, path string) error {
	t, err := v.walk(at, path, never)
	switch {
	case err != nil:
		return err
	case t.last == dot:
		return linux.EINVAL
	case t.last == dotDot:
		return linux.ENOTEMPTY
	case t.last == root:
		return linux.EBUSY
	}
	dir, err := v.leaving(t)
	if err != nil {
		return err
	}
	if err = dir.Rmdir(t.name); err == nil {
		v.Tree.notifyRemoved(dir, t.name, t.place.Node)
	}
	return err
}

// Rename implements renameat2(2). Errors: EXDEV across mounts, EBUSY for ".", "..", the root or a mount point,
// EPERM, EACCES, EROFS, and those of Directory.Rename.
func (v *View) Rename(at Place, path string, newAt Place, newPath string, flags RenameFlags) error {
	if flags&^(RenameNoReplace|RenameExchange|RenameWhiteout) != 0 || flags&RenameExchange != 0 && flags != RenameExchange {
		return linux.EINVAL
	}
	from, err := v.walk(at, path, never)
	if err != nil {
		return err
	}
	to, err := v.walk(newAt, newPath, never)
	switch {
	case err != nil:
		return err
	case from.dir.mount != to.dir.mount:
		return linux.EXDEV
	case from.last == named && to.last != named && flags&RenameNoReplace != 0:
		return linux.EEXIST
	case from.last != named || to.last != named:
		return linux.EBUSY
	}
	if err := checkPair(from, to, flags); err != nil {
		return err
	}
	if from.place == to.place { // two names of one file
		return nil
	}
	dir, err := v.leaving(from)
	if err != nil {
		return err
	}
	into, err := v.arriving(from, to, flags)
	if err != nil {
		return err
	}
	if err = v.rename(from, dir, into, to.name, flags); err == nil {
		v.Tree.notifyMoved(from, to, dir, into, flags)
	}
	return err
}

// Whiteouter is a Directory whose file system can store whiteouts: character devices with the number 0. In an upper layer of an
// overlay, a whiteout hides the file with the same name in the lower layers.
type Whiteouter interface {
	Directory
	// RenameWhiteout is like Rename, and atomically creates a whiteout at the old name.
	RenameWhiteout(name string, to Directory, newName string, flags RenameFlags, owner Owner) error
}

// rename moves a name to another directory (the parameter into). Errors: EINVAL for a whiteout if the file system has none.
func (v *View) rename(from target, dir, into Directory, newName string, flags RenameFlags) error {
	if flags&RenameWhiteout == 0 {
		return dir.Rename(from.name, into, newName, flags)
	}
	w, ok := dir.(Whiteouter)
	if !ok {
		return linux.EINVAL
	}
	_, owner, err := v.newIn(from.dir, dir, CharDevice)
	if err != nil {
		return err
	}
	return w.RenameWhiteout(from.name, into, newName, flags&^RenameWhiteout, owner)
}

// checkPair returns the errors of renameat2(2) that precede the checks of permissions.
func checkPair(from, to target, flags RenameFlags) error {
	_, isDir := from.place.Node.(Directory)
	_, replacesDir := to.place.Node.(Directory)
	exchange := flags&RenameExchange != 0
	if err := from.dir.writable(); err != nil {
		return err
	}
	switch {
	case !from.exists():
		return linux.ENOENT
	case to.exists() && flags&RenameNoReplace != 0:
		return linux.EEXIST
	case !to.exists() && exchange:
		return linux.ENOENT
	case exchange && to.slash && !replacesDir, (from.slash || to.slash && !exchange) && !isDir:
		return linux.ENOTDIR
	}
	return nil
}

// arriving checks that v may move the file of one target (from) to the last name of
// another (to), and returns the target directory.
func (v *View) arriving(from, to target, flags RenameFlags) (into Directory, err error) {
	if to.exists() {
		into, err = v.leaving(to)
	} else {
		into, err = v.room(to)
	}
	if err != nil || from.dir == to.dir {
		return into, err
	}
	_, isDir := from.place.Node.(Directory)
	_, replacesDir := to.place.Node.(Directory)
	mayMove := func(dir Place) bool { // the move changes the entry ".." of the directory
		return v.Who.May(dir.Node.Attr(), ToWrite)
	}
	if isDir && !mayMove(from.place) || replacesDir && flags&RenameExchange != 0 && !mayMove(to.place) {
		return nil, linux.EACCES
	}
	return into, nil
}
