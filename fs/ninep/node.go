package ninep

import (
	"container/list"
	"weak"

	"loam/abi/linux"
	"loam/fs"
)

// node is a file of any type. FileSystem.mu guards the fields that change.
type node struct {
	s    *FileSystem
	self weak.Pointer[node]
	key  key
	kind fs.Mode

	// The location where the file was last found. dir is nil for the root, and for a file without a
	// name.
	dir     *node
	name    string
	gone    bool // the file has no name left, as far as the client knows
	removed bool // gone, because the client has removed its name
	noLink  bool // the file must not get a name

	attr    fs.Attr
	fresh   instant // attr is valid until then
	changed uint64  // tick of the last change by the client
	sole    instant // until this time the file has only one name, unless the client itself adds one by Link

	// fid is 0 or the node's own FID. If pins is not 0, requests use the FID. Otherwise the node is in the list
	// FileSystem.fids and the FID may be released, unless kept is set: then the file can be reached only by this FID,
	// which is released with the node.
	fid  uint32
	pins int
	lru  *list.Element
	kept bool

	handles   []*handle // open handles
	madeFID   uint32    // FID that is open since the creation of the file; 0: none
	truncated bool      // the last open has truncated the file, and nothing was written since

	names   *names                        // cached names of a directory
	kids    map[string]weak.Pointer[node] // the nodes that are located in this directory
	sweepAt int                           // number of kids at which kids without references are removed from the map
	filling chan struct{}                 // not nil while this directory is being listed
	target  string                        // target of a symbolic link
	targets instant                       // target is valid until then
}

// Files by type. Equal values are the same file.
type (
	directory struct{ *node }
	regular   struct{ *node }
	symlink   struct{ *node }
	special   struct{ *node }
)

func keyOf(q QID) key { return key{q.Path, q.Version} }

// fsNode returns the node as an fs.Node of the type for its kind of file.
func (n *node) fsNode() fs.Node {
	switch n.kind {
	case fs.Dir:
		return directory{n}
	case fs.Regular:
		return regular{n}
	case fs.Symlink:
		return symlink{n}
	}
	return special{n}
}

// attrOf converts attributes of the protocol.
func attrOf(a *Attr) fs.Attr {
	return fs.Attr{
		Inode: a.QID.Path, Mode: fs.Mode(a.Mode), Links: uint32(a.Links), UID: a.UID, GID: a.GID,
		Device: fs.DeviceOf(a.Device), Size: int64(a.Size), Blocks: int64(a.Blocks), BlockSize: int64(a.BlockSize),
		Access: timeOf(a.Access), Modify: timeOf(a.Modify), Status: timeOf(a.Status),
	}
}

func timeOf(t Time) fs.Time { return fs.Time(int64(t.Sec)*1e9 + int64(t.Nsec)) }

// wireTime is the inverse of timeOf.
func wireTime(t fs.Time) Time {
	sec, nsec := int64(t)/1e9, int64(t)%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	return Time{uint64(sec), uint64(nsec)}
}

// nodeOf returns the node of a file that was found at a name in a directory; d is nil if the file
// has no name. It returns nil if the answer of the server is impossible: a directory that contains
// itself. The caller holds mu.
func (s *FileSystem) nodeOf(d *node, name string, a *Attr) *node {
	k := keyOf(a.QID)
	kind := fs.Mode(a.Mode).Type()
	if p, ok := s.nodes[k]; ok {
		if n := p.Value(); n == d && n != nil {
			return nil
		} else if n != nil && n.replaced(kind) {
			n.gone = true
		} else if n != nil {
			if d != nil && n != s.root {
				s.locate(n, d, name)
			}
			return n
		}
	}
	n := &node{s: s, key: k, kind: kind}
	n.self = weak.Make(n)
	s.sweepNodes()
	s.nodes[k] = n.self
	if d != nil {
		s.locate(n, d, name)
	} else {
		n.gone = true
	}
	return n
}

// sweepNodes removes the nodes to which nothing refers any more, if there may be many. (A cleanup for each node would cost
// as much as the rest of a lookup.) The caller holds mu.
func (s *FileSystem) sweepNodes() {
	const few = 1024
	if len(s.nodes) < max(s.sweepAt, few) {
		return
	}
	for k, w := range s.nodes {
		if w.Value() == nil {
			delete(s.nodes, k)
		}
	}
	s.sweepAt = 2 * len(s.nodes)
}

// replaced reports whether a file with the node's QID, but of the given type, is another file than the node's: the
// server's clock for QIDs is coarse, so the QID of a file that was removed may be used again. The caller holds mu.
func (n *node) replaced(kind fs.Mode) bool {
	return n.kind != kind || n.removed && n.fid == 0 && n.madeFID == 0 && len(n.handles) == 0
}

// locate records the location of a file. The caller holds mu.
func (s *FileSystem) locate(n, d *node, name string) {
	n.gone, n.removed = false, false
	if n.dir == d && n.name == name && d.kids[name].Value() == n {
		return
	}
	for up := d; up != nil; up = up.dir { // a wrong answer of the server must not create a loop
		if up == n {
			return
		}
	}
	n.leave()
	n.dir, n.name = d, name
	d.adopt(n, name)
}

// leave removes the node from its location. The caller holds mu.
func (n *node) leave() {
	if d := n.dir; d != nil && d.kids[n.name].Value() == n {
		delete(d.kids, n.name)
	}
	n.dir, n.name = nil, ""
}

// adopt records that a node is at a name in directory d. The caller holds mu.
func (d *node) adopt(n *node, name string) {
	const few = 64
	if len(d.kids) >= max(d.sweepAt, few) {
		for name, w := range d.kids {
			if w.Value() == nil {
				delete(d.kids, name)
			}
		}
		d.sweepAt = 2 * len(d.kids)
	}
	if d.kids == nil {
		d.kids = map[string]weak.Pointer[node]{}
	}
	d.kids[name] = n.self
}

// kid returns the node that was found at a name in d, or nil. The caller holds mu.
func (d *node) kid(name string) *node {
	n := d.kids[name].Value()
	if n == nil || n.gone || n.dir != d || n.name != name {
		return nil
	}
	return n
}

// learn stores attributes from the reply to a request that began at tick began. The caller holds
// mu.
func (n *node) learn(a *Attr, began uint64, until instant) {
	if n.changed <= began {
		n.attr, n.fresh = attrOf(a), until
		if n.sole = until; a.Links != 1 {
			n.sole = 0
		}
	}
}

// learnLast stores attributes that were reported together with a change of the file, unless there was another change
// meanwhile. It is called after touch. The caller holds mu.
func (n *node) learnLast(a *Attr, began uint64, until instant) {
	if n.s.tick <= began+1 && keyOf(a.QID) == n.key && !n.gone {
		n.attr, n.fresh = attrOf(a), until
	}
}

// touch records that a change of the file by the client has ended. The caller holds mu.
func (n *node) touch() {
	n.s.tick++
	n.changed = n.s.tick
	n.fresh = 0
	if n.dir != nil && n.dir.names != nil {
		if k := n.dir.names.known[n.name]; k != nil && !k.absent {
			k.stale = true
		}
	}
}

// begin returns the current tick, and the time until which a result that arrives now is valid.
func (s *FileSystem) begin() (tick uint64, until instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.valid == 0 {
		return s.tick, 0
	}
	return s.tick, s.now() + instant(s.valid)
}

// Attr implements fs.Node. A removed file has zero links.
func (n *node) Attr() fs.Attr {
	s := n.s
	s.mu.Lock()
	if n.fresh != 0 && s.now().Before(n.fresh) {
		defer s.mu.Unlock()
		return n.attr
	}
	s.mu.Unlock()
	a, err := n.ask()
	if err != nil {
		return fs.Attr{Inode: n.key.path, Mode: n.kind}
	}
	return a
}

// ask requests the file's attributes from the server. Errors: ENOENT if the file was removed, EIO.
func (n *node) ask() (fs.Attr, error) {
	s := n.s
	began, until := s.begin()
	fid, name, release, err := n.reach()
	if err != nil {
		return fs.Attr{}, err
	}
	var a Attr
	err = s.lookup(fid, name, &a)
	release()
	if err != nil && err != linux.ENOENT {
		return fs.Attr{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || keyOf(a.QID) != n.key || fs.Mode(a.Mode).Type() != n.kind {
		if n.changed <= began {
			n.gone = true
		}
		return fs.Attr{}, linux.ENOENT
	}
	n.learn(&a, began, until)
	return attrOf(&a), nil
}

// reach returns the FID and the name by which a request addresses the file: by its own FID and no name, or by the FID
// of its directory and its name. The caller calls release after the request. Errors: ENOENT, EIO.
func (n *node) reach() (fid uint32, name string, release func(), err error) {
	s := n.s
	s.mu.Lock()
	switch h := n.anyHandle(); {
	case n.fid != 0:
		defer s.mu.Unlock()
		return n.fid, "", s.pin(n), nil
	case h != nil:
		defer s.mu.Unlock()
		return h.fid, "", h.use(), nil
	case n.madeFID != 0:
		defer s.mu.Unlock()
		return n.madeFID, "", func() {}, nil // the FID stays open for longer than a request takes: see keepMade
	}
	dir, name := n.dir, n.name
	gone := n.gone
	s.mu.Unlock()
	switch {
	case gone || dir == nil:
		return 0, "", nil, linux.ENOENT
	case n.kind == fs.Dir:
		fid, release, err = s.dirFID(n)
		return fid, "", release, err
	}
	fid, release, err = s.dirFID(dir)
	return fid, name, release, err
}

// pin marks the node's FID as used, and returns a function that ends this. The caller holds mu.
func (s *FileSystem) pin(n *node) (release func()) {
	n.pins++
	if n.lru != nil {
		s.fids.Remove(n.lru)
		n.lru = nil
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n.pins--; n.pins == 0 && !n.kept {
			n.lru = s.fids.PushFront(n)
			s.trimFIDs()
		}
	}
}

// trimFIDs releases FIDs that were not used for a long time. The caller holds mu.
func (s *FileSystem) trimFIDs() {
	for s.fids.Len() > mostFIDs {
		s.dropFID(s.fids.Back().Value.(*node))
	}
}

// dropFID releases an unused FID. The caller holds mu.
func (s *FileSystem) dropFID(n *node) {
	if n.lru == nil {
		return
	}
	s.fids.Remove(n.lru)
	n.lru = nil
	s.conn.forget(n.fid)
	n.fid = 0
}

// dirFID returns the FID of a directory, which the caller releases. Errors: ENOENT if the directory has gone, EIO.
func (s *FileSystem) dirFID(d *node) (fid uint32, release func(), err error) {
	for {
		s.mu.Lock()
		if d.fid != 0 {
			defer s.mu.Unlock()
			return d.fid, s.pin(d), nil
		}
		var names []string
		up := d
		for ; up.fid == 0 && len(names) < MaxWalk; up = up.dir {
			if up.gone || up.dir == nil {
				s.mu.Unlock()
				return 0, nil, linux.ENOENT
			}
			names = append([]string{up.name}, names...)
		}
		if up.fid == 0 { // a deep directory is reached in several steps
			s.mu.Unlock()
			if _, release, err := s.dirFID(up); err != nil {
				return 0, nil, err
			} else {
				release()
			}
			continue
		}
		from, free := up.fid, s.pin(up)
		began := s.tick
		s.mu.Unlock()
		made, q, err := s.walk(from, names)
		free()
		if err != nil {
			return 0, nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if keyOf(q) != d.key {
			s.conn.forget(made)
			if d.changed <= began {
				d.gone = true
			}
			return 0, nil, linux.ENOENT
		}
		if d.fid != 0 { // another goroutine has got a FID meanwhile
			s.conn.forget(made)
		} else {
			d.fid = made
		}
		return d.fid, s.pin(d), nil
	}
}

// walk returns a new FID. Errors: ENOENT.
func (s *FileSystem) walk(from uint32, names []string) (uint32, QID, error) {
	fid := s.conn.newFID()
	var w Walked
	err := s.conn.call(TypeWalk, &Walk{from, fid, names}, &w)
	if err == nil && len(w.QIDs) != len(names) {
		err = linux.ENOENT
	}
	if err != nil {
		s.conn.dropFID(fid)
		return 0, QID{}, err
	}
	if len(names) == 0 {
		return fid, QID{}, nil
	}
	return fid, w.QIDs[len(names)-1], nil
}

// borrow returns a FID for the file, which the caller releases. The FID has not been opened, unless writable
// is set: then it may be the FID of an open handle that permits writing. Errors: ENOENT, EIO.
func (n *node) borrow(writable bool) (fid uint32, release func(), err error) {
	s := n.s
	if writable {
		s.mu.Lock()
		for _, h := range n.handles {
			if h.fid != 0 && h.flags.MayWrite() {
				defer s.mu.Unlock()
				return h.fid, h.use(), nil
			}
		}
		s.mu.Unlock()
	}
	fid, name, release, err := n.reach()
	if err != nil || name == "" {
		return fid, release, err
	}
	defer release()
	own, q, err := s.walk(fid, []string{name})
	if err != nil {
		return 0, nil, err
	}
	if keyOf(q) != n.key {
		s.conn.forget(own)
		return 0, nil, linux.ENOENT
	}
	return own, func() { s.conn.forget(own) }, nil
}

// Change implements fs.Node.
func (n *node) Change(c fs.Change) error {
	m := Setattr{Mode: uint32(c.Mode & fs.Permissions), UID: c.UID, GID: c.GID, Access: wireTime(c.Access), Modify: wireTime(c.Modify)}
	for _, f := range changeFields {
		if c.Fields&f.field != 0 {
			m.Valid |= f.valid
		}
	}
	if c.Fields&fs.SetSize != 0 {
		if n.kind != fs.Regular || c.Size < 0 {
			return linux.EINVAL
		}
		m.Size = uint64(c.Size)
		if c == (fs.Change{Fields: fs.SetSize}) && n.wasTruncated() {
			return nil
		}
		return n.s.pages.Resize(n, c.Size, func() error { return n.change(c, &m) })
	}
	return n.change(c, &m)
}

// change changes attributes on the server.
func (n *node) change(c fs.Change, m *Setattr) error {
	fid, release, err := n.borrow(c.Fields&fs.SetSize != 0)
	if err != nil {
		return err
	}
	m.FID = fid
	err = n.s.conn.call(TypeSetattr, m, Empty{})
	release()
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.touch()
	n.forgetContent()
	return err
}

// changeFields maps the fields of fs.Change to those of Setattr.
var changeFields = [...]struct {
	field fs.Fields
	valid uint32
}{
	{fs.SetMode, SetMode}, {fs.SetOwner, SetUID}, {fs.SetGroup, SetGID}, {fs.SetSize, SetSize},
	{fs.SetAccess, SetAccess | SetAccessTo}, {fs.SetModify, SetModify | SetModifyTo},
}

// wasTruncated reports whether the last open has truncated the file already, and resets that
// record.
func (n *node) wasTruncated() bool {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	was := n.truncated
	n.truncated = false
	return was
}

// anyHandle returns an open handle that has a FID, or nil. The caller holds mu.
func (n *node) anyHandle() *handle {
	for _, h := range n.handles {
		if h.fid != 0 {
			return h
		}
	}
	return nil
}

// InUse implements fs.Lasting.
func (r regular) InUse() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return len(r.handles) > 0
}

// Name implements fs.Named.
func (n *node) Name() (fs.Directory, string) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	if n.gone || n.dir == nil {
		return nil, ""
	}
	return directory{n.dir}, n.name
}

// Open implements fs.Node.
func (d directory) Open(fs.Flags) (fs.Handle, error) { return nil, linux.EISDIR }
func (l symlink) Open(fs.Flags) (fs.Handle, error)   { return nil, linux.ELOOP }
func (s special) Open(fs.Flags) (fs.Handle, error)   { return nil, linux.ENXIO }

// Target implements fs.Link.
func (l symlink) Target() (string, error) {
	s := l.s
	s.mu.Lock()
	if l.targets != 0 && s.now().Before(l.targets) {
		defer s.mu.Unlock()
		return l.target, nil
	}
	s.mu.Unlock()
	_, until := s.begin()
	fid, release, err := l.borrow(false)
	if err != nil {
		return "", err
	}
	var t Target
	err = s.conn.call(TypeReadlink, &OneFID{fid}, &t)
	release()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.target, l.targets = t.Target, until // the target of a symbolic link never changes
	return t.Target, nil
}
