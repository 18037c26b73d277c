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

// crossings are the mounts on the Identified nodes of one mount. They are never modified.
type crossings struct {
	table *map[Place]*mount // the value of Tree.mounts for which the list is valid
	list  []crossing
	many  bool // the list would be long, and is empty: search table
}

type crossing struct {
	from *Identity
	to   *mount
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
	table := t.mounts.Load()
	n, ok := p.Node.(Identified)
	if !ok {
		return (*table)[p]
	}
	c := p.mount.crossings.Load()
	if c == nil || c.table != table {
		c = p.mount.cross(table)
	}
	if c.many {
		return (*table)[p]
	}
	id := n.Identity()
	for i := range c.list {
		if c.list[i].from == id {
			return c.list[i].to
		}
	}
	return nil
}

// cross makes the list of the crossings of m in a table of all mounts.
func (m *mount) cross(table *map[Place]*mount) *crossings {
	c := &crossings{table: table}
	for at, to := range *table {
		if n, ok := at.Node.(Identified); ok && at.mount == m {
			c.list = append(c.list, crossing{n.Identity(), to})
		}
	}
	if len(c.list) > mostCrossings {
		c.list, c.many = nil, true
	}
	m.crossings.Store(c)
	return c
}
