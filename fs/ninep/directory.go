package ninep

import (
	"loam/abi/linux"
	"loam/fs"
)

// Lookup implements fs.Directory.
func (d directory) Lookup(name string) (fs.Node, error) {
	s := d.s
	if n, known := s.remembered(d.node, name); known {
		if n == nil {
			return nil, linux.ENOENT
		}
		return n.fsNode(), nil
	}
	if s.wantsListing(d.node) {
		if s.fill(d.node) == nil {
			s.walkAhead(d.node)
			if n, known := s.remembered(d.node, name); known {
				if n == nil {
					return nil, linux.ENOENT
				}
				return n.fsNode(), nil
			}
		}
	}
	n, err := s.find(d.node, name)
	if err != nil {
		return nil, err
	}
	return n.fsNode(), nil
}

// mostTries is how often a lookup is repeated if names of the directory change meanwhile. After
// that, changes of names must wait for the lookup.
const mostTries = 3

// find asks the server for a name. If the client changes names in the directory meanwhile, the answer may be
// older than the change, so find asks again.
func (s *FileSystem) find(d *node, name string) (*node, error) {
	for try := 0; ; try++ {
		if try == mostTries {
			s.naming.Lock()
			defer s.naming.Unlock()
		}
		dir, err := s.dirFID(d)
		if err != nil {
			return nil, err
		}
		began, until := s.begin()
		var a Attr
		err = s.lookup(dir.fid, name, &a)
		dir.release()
		if err != nil && err != linux.ENOENT {
			return nil, err
		}
		s.mu.Lock()
		if d.changed > began && try < mostTries {
			s.mu.Unlock()
			continue
		}
		defer s.mu.Unlock()
		if err != nil {
			s.remember(d, name, nil, began, until)
			return nil, err
		}
		r := recordOf(&a)
		n := s.nodeOf(d, name, &r)
		if n == nil {
			return nil, linux.EIO
		}
		n.learn(&r, began, until)
		s.remember(d, name, &r, began, until)
		return n, nil
	}
}

// Parent implements fs.Directory.
func (d directory) Parent() fs.Directory {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.dir == nil {
		return directory{d.s.root}
	}
	return directory{d.dir}
}

// NameOf implements fs.Directory.
func (d directory) NameOf(child fs.Directory) (string, bool) {
	c, ok := child.(directory)
	if !ok {
		return "", false
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	return c.name, c.dir == d.node && !c.gone
}

// Make implements fs.Directory.
func (d directory) Make(name string, mode fs.Mode, owner fs.Owner, device fs.Device) (fs.Node, error) {
	s := d.s
	if mode.Type() == fs.Regular {
		return s.create(d.node, name, mode, owner)
	}
	return s.makeAt(d.node, name, owner, func(fid uint32) (Type, Message) {
		if mode.Type() == fs.Dir {
			return TypeMkdir, &Mkdir{fid, name, uint32(mode & fs.Permissions), owner.GID}
		}
		return TypeMknod, &Mknod{fid, name, uint32(mode), device.Major, device.Minor, owner.GID}
	})
}

// Symlink implements fs.Directory.
func (d directory) Symlink(name, target string, owner fs.Owner) (fs.Node, error) {
	return d.s.makeAt(d.node, name, owner, func(fid uint32) (Type, Message) {
		return TypeSymlink, &Symlink{fid, name, target, owner.GID}
	})
}

// makeAt creates a file by a request that returns its QID. Errors: ENOENT if the file was renamed, removed or replaced before it
// was found by its name.
func (s *FileSystem) makeAt(d *node, name string, owner fs.Owner, request func(dir uint32) (Type, Message)) (fs.Node, error) {
	dir, err := s.dirFID(d)
	if err != nil {
		return nil, err
	}
	defer dir.release()
	t, m := request(dir.fid)
	var made OneQID
	err = s.conn.call(t, m, &made)
	s.mu.Lock()
	s.doubt(d, name)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	n, err := s.find(d, name)
	if err == nil && n.key != keyOf(made.QID) {
		err = linux.ENOENT
	}
	if err == nil && owner.UID != s.owner.UID && n.kind != fs.Symlink {
		err = n.Change(fs.Change{Fields: fs.SetOwner, UID: owner.UID})
		if err == linux.EPERM { // EPERM has the same meaning as for a new regular file
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return n.fsNode(), nil
}

// Link implements fs.Directory.
func (d directory) Link(name string, to fs.Node) error {
	s := d.s
	n := nodeOf(to)
	if n == nil || n.s != s {
		return linux.EXDEV
	}
	if n.noLink {
		return linux.ENOENT
	}
	file, err := n.borrow(false)
	if err != nil {
		return err
	}
	defer file.release()
	dir, err := s.dirFID(d.node)
	if err != nil {
		return err
	}
	defer dir.release()
	err = s.conn.call(TypeLink, &Link{dir.fid, file.fid, name}, Empty{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt(d.node, name)
	n.touch()
	n.sole = 0
	if err == nil && n.gone {
		s.locate(n, d.node, name)
	}
	return err
}

// nodeOf returns the node of a fs.Node, or nil.
func nodeOf(n fs.Node) *node {
	switch n := n.(type) {
	case directory:
		return n.node
	case regular:
		return n.node
	case symlink:
		return n.node
	case special:
		return n.node
	}
	return nil
}

// Unlink implements fs.Directory.
func (d directory) Unlink(name string) error { return d.remove(name, 0) }

// Rmdir implements fs.Directory.
func (d directory) Rmdir(name string) error { return d.remove(name, linux.AT_REMOVEDIR) }

func (d directory) remove(name string, flags uint32) error {
	s := d.s
	s.naming.Lock()
	defer s.naming.Unlock()
	if err := s.keepAt(d.node, name); err != nil {
		return err
	}
	dir, err := s.dirFID(d.node)
	if err != nil {
		return err
	}
	defer dir.release()
	err = s.conn.call(TypeUnlinkAt, &UnlinkAt{dir.fid, name, flags}, Empty{})
	s.mu.Lock()
	defer s.mu.Unlock()
	n := d.kid(name)
	if err != nil {
		s.doubt(d.node, name)
		return err
	}
	s.removed(d.node, name)
	if n != nil {
		s.lost(n)
	}
	return nil
}

// lost records that the name by which a file was located has been removed. The caller holds mu.
func (s *FileSystem) lost(n *node) {
	n.touch()
	n.gone, n.removed = true, true
	if n.kind == fs.Dir {
		s.dropNames(n)
		return // the parent that ".." refers to stays
	}
	n.leave()
}

// keepAt gets a FID for a file whose name is about to be removed, if the file may continue to exist
// without that name: it has other names, or is open without a FID.
func (s *FileSystem) keepAt(d *node, name string) error {
	s.mu.Lock()
	n := d.kid(name)
	needed := n != nil && n.kind != fs.Dir && n.fid == 0 && n.anyHandle() == nil
	if needed && len(n.handles) == 0 && n.sole != 0 && s.now().Before(n.sole) {
		needed = false
	}
	if needed && len(n.handles) == 0 {
		fresh := n.fresh != 0 && s.now().Before(n.fresh)
		needed = !fresh || n.attr.Links > 1
		if !fresh {
			s.mu.Unlock()
			a, err := n.ask()
			s.mu.Lock()
			needed = err == nil && a.Links > 1
		}
	}
	s.mu.Unlock()
	if !needed {
		return nil
	}
	return n.keep()
}

// Rename implements fs.Directory.
func (d directory) Rename(name string, to fs.Directory, newName string, flags fs.RenameFlags) error {
	s := d.s
	t, ok := to.(directory)
	if !ok || t.s != s {
		return linux.EXDEV
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	if flags&fs.RenameExchange == 0 {
		if err := s.keepAt(t.node, newName); err != nil {
			return err
		}
	}
	from, err := s.dirFID(d.node)
	if err != nil {
		return err
	}
	defer from.release()
	into, err := s.dirFID(t.node)
	if err != nil {
		return err
	}
	defer into.release()
	err = s.rename(RenameAt{from.fid, name, into.fid, newName}, flags)
	s.mu.Lock()
	defer s.mu.Unlock()
	moved, victim := d.kid(name), t.kid(newName)
	s.doubt(d.node, name)
	s.doubt(t.node, newName)
	if err != nil {
		return err
	}
	if moved == victim && moved != nil { // both names refer to the same file, or are equal: nothing has happened
		return nil
	}
	s.settle(d.node, name, moved, t.node, newName, victim, flags&fs.RenameExchange != 0)
	return nil
}

// settle records that a file (the parameter moved) was renamed from a name in d to a name in t, where another file
// (victim) was. moved and victim may be nil, which means that the client does not know the file. The caller holds mu.
func (s *FileSystem) settle(d *node, name string, moved *node, t *node, newName string, victim *node, exchange bool) {
	if victim != nil {
		victim.touch()
		if exchange {
			victim.leave()
		} else {
			s.lost(victim)
		}
	}
	if moved != nil {
		moved.touch()
		s.locate(moved, t, newName)
	}
	if exchange && victim != nil {
		s.locate(victim, d, name)
	}
}
