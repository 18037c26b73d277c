package fs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"loam/abi/linux"
)

// Mounts that programs make while the machine runs (mount(2)). All processes use one tree, except after unshare(2). A mount that is
// removed stays usable for open files and working directories in it, as after MNT_DETACH.

// MountFlags restrict what can be done with files that are reached through a mount.
type MountFlags uint32

// Values of MountFlags: what a mount forbids.
const (
	ReadOnlyMount MountFlags = 1 << iota
	NoExecute                // regular files cannot be executed, nor mapped as code
	NoSetID                  // execve ignores set-user-ID bits, set-group-ID bits and file capabilities
	NoDevices                // device files cannot be opened
)

// Mounted describes a mount for /proc/mounts.
type Mounted struct {
	Source, Path, Kind string
	Flags              MountFlags
	ReadOnly           bool // the file system is read-only, by all its mounts
}

func (m *mount) has(f MountFlags) bool { return MountFlags(m.flags.Load())&f != 0 }

func (m *mount) isReadOnly() bool { return m.frozen != nil && m.frozen.Load() }

// SetReadOnly makes the file system of a mount, whose root is p, read-only or writable, for all mounts of the file system. Files that are
// open for writing stay writable. Errors: EINVAL if p is not the root of a mount of the tree or of a detached mount.
func (t *Tree) SetReadOnly(p Place, on bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.IsMountRoot() || !t.mayUseMount(p.mount) {
		return linux.EINVAL
	}
	p.mount.frozen.Store(on)
	return nil
}

// On reports whether the place is reached through a mount with one of the flags.
func (p Place) On(f MountFlags) bool { return p.mount.has(f) }

// Bind makes a file or directory visible at another place of the same type (MS_BIND). The flags of the mount that contains
// the source apply to the new mount. Mounts below the source are not visible at the other place. Errors: ENOTDIR; EINVAL if
// one of the places is not in the tree; the source may also be in a detached mount.
func (t *Tree) Bind(about Mounted, from, at Place) error {
	if isDir := at.Node.Attr().Mode.Type() == Dir; isDir != (from.Node.Attr().Mode.Type() == Dir) {
		return linux.ENOTDIR
	}
	m, err := t.DetachedBind(about, from)
	if err == nil {
		err = t.Move(m, at, about.Path)
	}
	return err
}

// Remount replaces the flags of the mount whose root is p. Errors: EINVAL if p is not the root of a mount of the tree.
func (t *Tree) Remount(p Place, flags MountFlags) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.IsMountRoot() || !t.shows(p.mount) {
		return linux.EINVAL
	}
	p.mount.flags.Store(uint32(flags))
	t.changes.report()
	return nil
}

// Unmount removes the mount whose root is p. Errors: EINVAL if p is not the root of a mount; EBUSY for the root of the tree,
// and if another mount is on a directory of this one.
func (t *Tree) Unmount(p Place) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !p.IsMountRoot():
		return linux.EINVAL
	case p.mount == t.root:
		return linux.EBUSY
	}
	table := maps.Clone(t.mounts.Load().at)
	at := p.mount.at.Load()
	if at == nil || table[*at] != p.mount {
		return linux.EINVAL // it was never attached, or another thread has removed it
	}
	for _, other := range table {
		if other.at.Load().mount == p.mount {
			return linux.EBUSY
		}
	}
	delete(table, *at)
	t.mounts.Store(newMounts(t.root, table))
	t.changes.report()
	return nil
}

// Mounted returns the mounts that programs have made, in the order in which they were made.
func (t *Tree) Mounted() []Mounted {
	t.mu.Lock()
	defer t.mu.Unlock()
	var made []*mount
	for _, m := range t.mounts.Load().at {
		if m.about != nil {
			made = append(made, m)
		}
	}
	slices.SortFunc(made, func(a, b *mount) int { return cmp.Compare(a.number, b.number) })
	list := make([]Mounted, len(made))
	for i, m := range made {
		list[i] = *m.about
		list[i].Flags, list[i].ReadOnly = MountFlags(m.flags.Load()), m.isReadOnly()
	}
	return list
}

// Whole returns the view of a process whose root is the root of the tree.
func (v *View) Whole() *View {
	whole := *v
	whole.Root = v.Tree.Root()
	return &whole
}

// Mounted returns the mounts that programs have made below the root of v, with their paths in this root.
func (v *View) Mounted() (list []Mounted) {
	all := v.Tree.Mounted()
	if v.Root == v.Tree.Root() {
		return all
	}
	root, err := v.Whole().Path(v.Root)
	for _, m := range all {
		rest, below := strings.CutPrefix(m.Path, root)
		if err == nil && below && (rest == "" || rest[0] == '/') {
			m.Path = cmp.Or(rest, "/")
			list = append(list, m)
		}
	}
	return list
}

// Copy returns a tree with the same mounts, which change independently of those of t (CLONE_NEWNS). The function moved
// returns the place in the copy of a place in t.
func (t *Tree) Copy() (c *Tree, moved func(Place) Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.mounts.Load().at
	copies := map[*mount]*mount{}
	moved = func(p Place) Place {
		if m, ok := copies[p.mount]; ok {
			p.mount = m
		}
		return p
	}
	for _, m := range append(slices.Collect(maps.Values(old)), t.root) {
		n := &mount{fs: m.fs, frozen: m.frozen, file: m.file, device: m.device, number: m.number, about: m.about}
		n.learn()
		n.flags.Store(m.flags.Load())
		n.covered.Store(m.covered.Load())
		n.slot.Store(m.slot.Load())
		copies[m] = n
	}
	table := make(map[Place]*mount, len(old))
	for at, m := range old {
		n := copies[m]
		place := moved(at)
		n.at.Store(&place)
		table[place] = n
	}
	c = &Tree{common: t.common, number: t.copies.Add(1), root: copies[t.root]}
	c.mounts.Store(newMounts(c.root, table))
	return c, moved
}
