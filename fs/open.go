package fs

import (
	"strings"
	"syscall"
)

// Open is openat(2). mode counts when a file is made.
//
// Not there: FIFOs (ENXIO).
func (v *View) Open(at Place, path string, flags Flags, mode Mode) (*File, error) {
	switch {
	case flags&PathOnly != 0:
		flags &= PathOnly | MustBeDir | NoFollow
	case flags&TempFile != 0:
		return v.openTemp(at, path, flags, mode)
	case flags&(Create|MustBeDir) == Create|MustBeDir:
		return nil, syscall.EINVAL
	}
	if flags&Create != 0 {
		return v.openOrCreate(at, path, flags, mode)
	}
	p, err := v.Lookup(at, path, flags&NoFollow == 0)
	if err != nil {
		return nil, err
	}
	return v.open(p, flags)
}

// openOrCreate is Open with O_CREAT, which opens no directory, and with a slash
// behind the name opens nothing.
func (v *View) openOrCreate(at Place, path string, flags Flags, mode Mode) (*File, error) {
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
		return nil, err
	case (slash || t.slash) && t.last == named: // t.slash is that of a symbolic link's target
		return nil, syscall.EISDIR
	case !t.exists():
		return v.create(t, flags, mode)
	case exclusive:
		return nil, syscall.EEXIST
	case t.place.Node.Attr().Mode.Type() == Dir:
		return nil, syscall.EISDIR
	}
	return v.open(t.place, flags)
}

// create makes the file that Open did not find. Another who makes it at the
// same time wins, and is opened unless Exclusive forbids.
func (v *View) create(t target, flags Flags, mode Mode) (*File, error) {
	dir, err := v.room(t)
	if err != nil {
		return nil, err
	}
	node, err := v.makeIn(dir, t.name, Regular|mode&Permissions, Device{})
	if err == syscall.EEXIST && flags&Exclusive == 0 {
		if node, err = dir.Lookup(t.name); err == nil {
			return v.open(v.Tree.cross(Place{t.dir.mount, node}), flags)
		}
	}
	if err != nil {
		return nil, err
	}
	h, err := node.Open(flags)
	if err != nil {
		return nil, err
	}
	v.Tree.tellName(dir, t.name, node, Created)
	return v.opened(newFile(v.Tree, Place{t.dir.mount, node}, h, flags)), nil
}

// OpenPlace opens what is known already, with all checks of Open: a path below
// /proc/self/fd, a file to execute.
func (v *View) OpenPlace(p Place, flags Flags) (*File, error) { return v.open(p, flags) }

func (v *View) open(p Place, flags Flags) (*File, error) {
	a := p.Node.Attr()
	if err := v.mayOpen(p, a, flags); err != nil {
		return nil, err
	}
	if flags&PathOnly != 0 {
		return newFile(v.Tree, p, nil, flags), nil
	}
	var h Handle
	var err error
	switch a.Mode.Type() {
	case Dir:
		return v.opened(newFile(v.Tree, p, nil, flags)), nil
	case CharDevice, BlockDevice:
		h, err = v.Tree.openDevice(a, flags)
	case Fifo, Socket:
		return nil, syscall.ENXIO
	default:
		h, err = p.Node.Open(flags)
	}
	if err != nil {
		return nil, err
	}
	if flags&Truncate != 0 && a.Mode.Type() == Regular {
		if err := p.Node.Change(Change{Fields: SetSize}); err != nil {
			h.Close()
			return nil, err
		}
		v.Tree.tell(p.Node, Modified)
	}
	return v.opened(newFile(v.Tree, p, h, flags)), nil
}

// opened tells of a file.
func (v *View) opened(f *File) *File {
	v.Tree.tell(f.place.Node, Opened)
	return f
}

// mayOpen checks flags against what the file is and who may do what with it.
func (v *View) mayOpen(p Place, a Attr, flags Flags) error {
	kind := a.Mode.Type()
	switch {
	case flags&MustBeDir != 0 && kind != Dir:
		return syscall.ENOTDIR
	case flags&PathOnly != 0:
		return nil
	case kind == Symlink:
		return syscall.ELOOP
	}
	writes := flags.MayWrite() || flags&Truncate != 0
	if writes {
		switch kind {
		case Dir:
			return syscall.EISDIR
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
	if !v.Who.May(a, wish) {
		return syscall.EACCES
	}
	return nil
}
