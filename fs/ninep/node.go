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
	guard   instant // the mode, the owner and the group in attr are valid until then, also after names in the directory were changed
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

// nodeOf returns the node of a file that was found at a name in a directory; d is nil if the file
// has no name. It returns nil if the answer of the server is impossible: a directory that contains
// itself. The caller holds mu.
func (s *FileSystem) nodeOf(d *node, name string, r *record) *node {
	return s.nodeWith(d, name, r, nil)
}

// nodeWith is nodeOf with a new node (the parameter spare) for a file that has none yet; nil: a node is allocated. The caller holds
// mu.
func (s *FileSystem) nodeWith(d *node, name string, r *record, spare *node) *node {
	k, kind := r.key, r.Mode.Type()
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
	n := spare
	if n == nil {
		n = s.newNode()
	}
	n.key, n.kind = k, kind
	s.sweepNodes()
	s.nodes[k] = n.self
	if d != nil {
		s.locate(n, d, name)
	} else {
		n.gone = true
	}
	return n
}

// newNode returns a node without a file.
func (s *FileSystem) newNode() *node {
	n := &node{s: s}
	n.self = weak.Make(n)
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
func (n *node) learn(r *record, began uint64, until instant) {
	if n.changed <= began {
		n.attr, n.fresh, n.guard = r.Attr, until, until
		if n.sole = until; r.Links != 1 {
			n.sole = 0
		}
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

// Guard implements fs.Guarding. A program that creates or removes files in a directory needs no round trip for the directory's
// permissions, although its times change each time.
func (s *FileSystem) Guard(dir fs.Directory) fs.Attr {
	d, ok := dir.(directory)
	if !ok {
		return dir.Attr()
	}
	s.mu.Lock()
	if d.guard != 0 && s.now().Before(d.guard) && !d.gone {
		defer s.mu.Unlock()
		return d.attr
	}
	s.mu.Unlock()
	return d.Attr()
}

// ask requests the file's attributes from the server. Errors: ENOENT if the file was removed, EIO.
func (n *node) ask() (fs.Attr, error) {
	s := n.s
	began, until := s.begin()
	at, name, err := n.reach()
	if err != nil {
		return fs.Attr{}, err
	}
	var a Attr
	err = s.lookup(at.fid, name, &a)
	at.release()
	if err != nil && err != linux.ENOENT {
		return fs.Attr{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := recordOf(&a)
	if err != nil || r.key != n.key || r.Mode.Type() != n.kind {
		if n.changed <= began {
			n.gone = true
		}
		return fs.Attr{}, linux.ENOENT
	}
	n.learn(&r, began, until)
	return r.Attr, nil
}

// reach returns the FID and the name by which a request addresses the file: by its own FID and no name, or by the FID
// of its directory and its name. The caller releases it after the request. Errors: ENOENT, EIO.
func (n *node) reach() (at held, name string, err error) {
	s := n.s
	s.mu.Lock()
	switch h := n.anyHandle(); {
	case n.fid != 0:
		defer s.mu.Unlock()
		return s.pin(n), "", nil
	case h != nil:
		defer s.mu.Unlock()
		return h.use(), "", nil
	case n.madeFID != 0:
		defer s.mu.Unlock()
		return held{fid: n.madeFID}, "", nil // the FID stays open for longer than a request takes: see keepMade
	}
	dir, name := n.dir, n.name
	gone := n.gone
	s.mu.Unlock()
	switch {
	case gone || dir == nil:
		return held{}, "", linux.ENOENT
	case n.kind == fs.Dir:
		at, err = s.dirFID(n)
		return at, "", err
	}
	at, err = s.dirFID(dir)
	return at, name, err
}

// held is a FID that requests may use until it is released. The zero value holds none.
type held struct {
	fid uint32
	// At most one of these fields is set: the node whose own FID it is, the handle that it is open for, or the connection to
	// which it is returned by release.
	node   *node
	handle *handle
	conn   *conn
}

// release ends the use of the FID.
func (h held) release() {
	switch {
	case h.node != nil:
		h.node.unpin()
	case h.handle != nil:
		h.handle.unuse()
	case h.conn != nil:
		h.conn.forget(h.fid)
	}
}

// pin marks the node's FID as used. The caller holds mu.
func (s *FileSystem) pin(n *node) held {
	n.pins++
	if n.lru != nil {
		s.fids.Remove(n.lru)
		n.lru = nil
	}
	return held{fid: n.fid, node: n}
}

// unpin ends a pin.
func (n *node) unpin() {
	s := n.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.pins--; n.pins == 0 && !n.kept {
		n.lru = s.fids.PushFront(n)
		s.trimFIDs()
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
func (s *FileSystem) dirFID(d *node) (held, error) {
	for {
		s.mu.Lock()
		if d.fid != 0 {
			dir := s.pin(d)
			s.mu.Unlock()
			return dir, nil
		}
		var names []string
		up := d
		for ; up.fid == 0 && len(names) < MaxWalk; up = up.dir {
			if up.gone || up.dir == nil {
				s.mu.Unlock()
				return held{}, linux.ENOENT
			}
			names = append([]string{up.name}, names...)
		}
		if up.fid == 0 { // a deep directory is reached in several steps
			s.mu.Unlock()
			from, err := s.dirFID(up)
			if err != nil {
				return held{}, err
			}
			from.release()
			continue
		}
		from := s.pin(up)
		began := s.tick
		s.mu.Unlock()
		made, q, err := s.walk(from.fid, names)
		from.release()
		if err != nil {
			return held{}, err
		}
		return s.gotFID(d, made, q, began)
	}
}

// gotFID makes a FID that was walked to the FID of directory d, and pins it. The walk began at tick began. Errors: ENOENT if the
// FID is of another file.
func (s *FileSystem) gotFID(d *node, fid uint32, q QID, began uint64) (held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if keyOf(q) != d.key {
		s.conn.forget(fid)
		if d.changed <= began {
			d.gone = true
		}
		return held{}, linux.ENOENT
	}
	if d.fid != 0 { // another goroutine has got a FID meanwhile
		s.conn.forget(fid)
	} else {
		d.fid = fid
	}
	return s.pin(d), nil
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
func (n *node) borrow(writable bool) (held, error) {
	s := n.s
	if writable {
		s.mu.Lock()
		for _, h := range n.handles {
			if h.fid != 0 && h.flags.MayWrite() {
				defer s.mu.Unlock()
				return h.use(), nil
			}
		}
		s.mu.Unlock()
	}
	at, name, err := n.reach()
	if err != nil || name == "" {
		return at, err
	}
	defer at.release()
	own, q, err := s.walk(at.fid, []string{name})
	if err != nil {
		return held{}, err
	}
	if keyOf(q) != n.key {
		s.conn.forget(own)
		return held{}, linux.ENOENT
	}
	return held{fid: own, conn: s.conn}, nil
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
	file, err := n.borrow(c.Fields&fs.SetSize != 0)
	if err != nil {
		return err
	}
	m.FID = file.fid
	err = n.s.conn.call(TypeSetattr, m, Empty{})
	file.release()
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.touch()
	n.guard = 0
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
	file, err := l.borrow(false)
	if err != nil {
		return "", err
	}
	var t Target
	err = s.conn.call(TypeReadlink, &OneFID{file.fid}, &t)
	file.release()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.target, l.targets = t.Target, until // the target of a symbolic link never changes
	return t.Target, nil
}
