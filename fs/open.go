package fs

import (
	"strings"

	"loam/abi/linux"
)

// Open implements openat(2). mode is used if a file is created. Opening a FIFO returns ENXIO; the
// caller must implement FIFOs.
func (v *View) Open(at Place, path string, flags Flags, mode Mode) (*File, error) {
	var o Opening
	if err := v.OpenTo(&o, at, path, flags, mode); err != nil {
		return nil, err
	}
	return o.file(), nil
}

// mostRaces is the maximum number of lookups of an open with Create.
const mostRaces = 16

// OpenTo is like Open, but the caller allocates the File, and calls its method Init with o.
func (v *View) OpenTo(o *Opening, at Place, path string, flags Flags, mode Mode) error {
	switch {
	case flags&PathOnly != 0:
		flags &= PathOnly | MustBeDir | NoFollow
	case flags&TempFile != 0:
		return v.openTemp(o, at, path, flags, mode)
	case flags&(Create|MustBeDir) == Create|MustBeDir:
		return linux.EINVAL
	}
	if flags&Create != 0 {
		// If a file loses its last name before it is opened, the name is looked up again: O_CREAT does not report such a race.
		for range mostRaces {
			*o = Opening{}
			if err := v.openOrCreate(o, at, path, flags, mode); err != linux.ENOENT || o.place.Node == nil {
				return err
			}
		}
		return linux.ENOENT
	}
	w := walker{View: v, target: target{dir: at}}
	if err := w.resolve(path, lastLink(flags&NoFollow == 0)); err != nil {
		return err
	}
	p, err := w.found()
	if err != nil {
		return err
	}
	return v.open(o, p, flags, v.origin(&w.target))
}

// Openable resolves the path of an existing file, and makes the checks of Open without opening the file.
func (v *View) Openable(at Place, path string, flags Flags) (Place, error) {
	p, err := v.Lookup(at, path, flags&NoFollow == 0)
	if err == nil {
		a := p.Node.Attr()
		err = v.mayOpen(p, &a, flags)
	}
	return p, err
}

// origin is the directory in which a file was found, and its name there. The zero origin is unknown.
type origin struct {
	dir  Place
	name string
}

// origin returns where the file was found. A file behind a magic link is found at the path that is the link's text, unless
// another file is there.
func (v *View) origin(t *target) origin {
	if t.magic == nil {
		if t.last != named {
			return origin{}
		}
		return origin{t.dir, t.name}
	}
	if path, err := v.TargetOf(t.magic); err == nil && strings.HasPrefix(path, "/") {
		if to, err := v.walk(v.Root, path, never); err == nil && to.magic == nil && to.place.Node == t.place.Node {
			return v.origin(&to)
		}
	}
	return origin{t.dir, t.name}
}

// PathOf returns the path of an open file as v sees it (proc(5), /proc/PID/fd). It ends with " (deleted)" if the file
// does not have the name any more under which it was opened. Errors: ENOENT for a file that was not opened by a name.
func (v *View) PathOf(f *File) (string, error) {
	if _, isDir := f.place.Node.(Directory); isDir {
		if path, err := v.Path(f.place); err == nil {
			return path, nil
		}
	}
	if f.from.name == "" {
		return "", linux.ENOENT
	}
	path, err := v.Path(f.from.dir)
	if err != nil {
		return "", err
	}
	path = strings.TrimSuffix(path, "/") + "/" + f.from.name
	if f.found() == nil {
		path += " (deleted)"
	}
	return path, nil
}

// found returns the directory in which the file was found; nil if the file no longer has its name there.
func (o *Opening) found() Directory {
	dir, ok := o.from.dir.Node.(Directory)
	if !ok {
		return nil
	}
	if n, err := dir.Lookup(o.from.name); err != nil || o.tree.cross(Place{o.from.dir.mount, n}).Node != o.place.Node {
		return nil
	}
	return dir
}

// openOrCreate implements Open with O_CREAT. It returns EISDIR for a directory and for a path with a
// trailing slash.
func (v *View) openOrCreate(o *Opening, at Place, path string, flags Flags, mode Mode) error {
	exclusive := flags&Exclusive != 0
	bare := strings.TrimRight(path, "/")
	slash := bare != path && bare != ""
	if slash {
		path = bare
	}
	how := always
	if flags&NoFollow != 0 || exclusive || slash {
		how = never
	}
	t, err := v.walk(at, path, how)
	switch {
	case err != nil:
		return err
	case (slash || t.slash) && t.last == named: // t.slash belongs to a symbolic link's target
		return linux.EISDIR
	case !t.exists():
		return v.create(o, t, flags, mode)
	case exclusive:
		return linux.EEXIST
	case t.place.Node.Attr().Mode.Type() == Dir:
		return linux.EISDIR
	}
	return v.open(o, t.place, flags, v.origin(&t))
}

// create creates the file that openOrCreate did not find. If another process creates it at the same
// time, that file is opened, unless Exclusive is set.
func (v *View) create(o *Opening, t target, flags Flags, mode Mode) error {
	dir, err := v.room(t)
	if err != nil {
		return err
	}
	node, err := v.makeIn(t, dir, Regular|mode&Permissions, Device{})
	if err == linux.EEXIST && flags&Exclusive == 0 {
		if node, err = dir.Lookup(t.name); err == nil {
			return v.open(o, v.Tree.cross(Place{t.dir.mount, node}), flags, v.origin(&t))
		}
	}
	if err != nil {
		return err
	}
	*o = Opening{tree: v.Tree, place: Place{t.dir.mount, node}, from: v.origin(&t), asked: flags, made: true}
	if o.handle, err = node.Open(flags); err != nil {
		return err
	}
	v.Tree.notifyName(dir, t.name, node, Created)
	o.notify(Opened)
	return nil
}

// OpenPlace opens a known place with all checks of Open. It serves paths in /proc/self/fd, and files to
// execute.
func (v *View) OpenPlace(p Place, flags Flags) (*File, error) {
	var o Opening
	if err := v.open(&o, p, flags, origin{}); err != nil {
		return nil, err
	}
	return o.file(), nil
}

// open checks permissions, opens the node or the device, and truncates the file if the flags ask for
// it.
func (v *View) open(o *Opening, p Place, flags Flags, from origin) error {
	a := p.Node.Attr()
	if err := v.mayOpen(p, &a, flags); err != nil {
		return err
	}
	*o = Opening{tree: v.Tree, place: p, from: from, asked: flags}
	var err error
	if flags&PathOnly != 0 {
		if n, ok := p.Node.(Lasting); ok {
			o.kept, err = n.Open(PathOnly)
		}
		return err
	}
	switch a.Mode.Type() {
	case Dir:
	case CharDevice, BlockDevice:
		o.handle, err = v.Tree.openDevice(a.Mode.Type(), a.Device, flags)
	case Fifo, Socket:
		return linux.ENXIO
	default:
		if err = v.Tree.mayUse(p.Node, flags); err == nil {
			o.handle, err = v.openNode(p.Node, flags)
		}
	}
	if err == nil && flags&Truncate != 0 && a.Mode.Type() == Regular {
		err = v.truncateOpened(o, a)
	}
	if err != nil {
		return err
	}
	o.notify(Opened)
	return nil
}

// truncateOpened makes an opened file with attributes a empty. On error, it closes the file.
func (v *View) truncateOpened(o *Opening, a Attr) error {
	c, err := v.removePrivileges(o.place.Node, a, Change{Fields: SetSize})
	if err == nil {
		err = o.place.Node.Change(c)
	}
	if err != nil {
		o.handle.Close()
		return err
	}
	o.notify(Modified)
	return nil
}

// mayOpen checks the flags against the file's type and permissions.
func (v *View) mayOpen(p Place, a *Attr, flags Flags) error {
	kind := a.Mode.Type()
	switch {
	case flags&MustBeDir != 0 && kind != Dir:
		return linux.ENOTDIR
	case flags&PathOnly != 0:
		return nil
	case kind == Symlink:
		return linux.ELOOP
	case flags&Direct != 0 && !directAllowed(kind):
		return linux.EINVAL
	case (kind == CharDevice || kind == BlockDevice) && p.On(NoDevices):
		return linux.EACCES
	}
	writes := flags.MayWrite() || flags&Truncate != 0
	if writes {
		switch kind {
		case Dir:
			return linux.EISDIR
		case Regular:
			if err := p.writable(); err != nil {
				return err
			}
		}
	}
	var wish Wish
	if flags.MayRead() {
		wish |= ToRead
	}
	if writes {
		wish |= ToWrite
	}
	switch {
	case !v.may(p.Node, a, wish):
		return linux.EACCES
	case flags&linux.O_NOATIME != 0 && !v.Who.Owns(*a):
		return linux.EPERM
	}
	return nil
}
