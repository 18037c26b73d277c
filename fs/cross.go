package fs

// Crossing mounts: the search for the file system that is mounted on a node.

// Identified is a Node with an Identity. A walk finds the mount on such a node by comparing pointers; it has to hash other nodes.
type Identified interface {
	Node
	// Identity returns the same pointer for the same file, and another one for every other file.
	Identity() *Identity
}

// Identity is a field of a node. Its address identifies the node.
type Identity struct{ _ byte }

// mounts are the mounts of a tree at one moment. They are never modified. Only the tree refers to them, so that no mount keeps a
// file system in memory that was unmounted.
type mounts struct {
	at        map[Place]*mount // by the place that each hides
	crossings []crossings      // by mount.slot, for each mount of the tree
}

// crossings are the mounts on the Identified nodes of one mount.
type crossings struct {
	from *mount // nil: the slot is free
	list []crossing
	many bool // the list would be long: search mounts.at
}

type crossing struct {
	at *Identity
	to *mount
}

// mostCrossings is the maximum length of a list. Up to this length, a search of the list is faster than a search of the table.
const mostCrossings = 32

// cross follows mounts: it returns the root of the topmost file system mounted at p, or p itself.
func (t *Tree) cross(p Place) Place {
	for p.mount.covered.Load() {
		m := t.on(p)
		if m == nil {
			break
		}
		p = m.root()
	}
	return p
}

// on returns the mount that covers a place, or nil.
func (t *Tree) on(p Place) *mount {
	all := t.mounts.Load()
	n, ok := p.Node.(Identified)
	if !ok {
		return all.at[p]
	}
	c := all.crossingsOf(p.mount)
	if c == nil || c.many {
		return all.at[p]
	}
	id := n.Identity()
	for i := range c.list {
		if c.list[i].at == id {
			return c.list[i].to
		}
	}
	return nil
}

// crossingsOf returns the crossings of a mount; nil if it is not in the tree, for instance in a copy of the tree.
func (a *mounts) crossingsOf(m *mount) *crossings {
	if slot := int(m.slot.Load()); slot < len(a.crossings) && a.crossings[slot].from == m {
		return &a.crossings[slot]
	}
	return nil
}

// freeSlot returns the slot for a new mount.
func (a *mounts) freeSlot() int {
	for i := range a.crossings {
		if a.crossings[i].from == nil {
			return i
		}
	}
	return len(a.crossings)
}

// newMounts returns the mounts of a tree with a root. Each mount has a slot of its own.
func newMounts(root *mount, at map[Place]*mount) *mounts {
	a := &mounts{at: at}
	a.add(root)
	for _, m := range at {
		a.add(m)
	}
	for p, to := range at {
		n, ok := p.Node.(Identified)
		if c := a.crossingsOf(p.mount); ok && c != nil && !c.many {
			c.list = append(c.list, crossing{n.Identity(), to})
			c.many = len(c.list) > mostCrossings
		}
	}
	return a
}

// add adds empty crossings for a mount of the tree.
func (a *mounts) add(m *mount) {
	slot := int(m.slot.Load())
	if more := slot + 1 - len(a.crossings); more > 0 {
		a.crossings = append(a.crossings, make([]crossings, more)...)
	}
	a.crossings[slot].from = m
}
