package fs

import (
	"maps"
	"strings"

	"loam/abi/linux"
)

// Detached mounts (fsmount(2), open_tree(2)): mounts that no place of the tree shows. A descriptor leads to their files, and Move
// attaches them to the tree.

// Detached returns the root of a new mount of a file system.
func (t *Tree) Detached(about Mounted, f FileSystem) Place {
	return t.detached(&mount{fs: f, about: &about})
}

// Single is a file system that exists once, such as proc. Programs may mount it again.
type Single interface {
	FileSystem
	// Kind returns the type for mount(2).
	Kind() string
}

// DetachedSingle returns the root of a new mount of the Single of type about.Kind that Mount has mounted last. If shared is set,
// SetReadOnly changes all mounts that share it; otherwise only the new mount and its copies. Errors: ENODEV.
func (t *Tree) DetachedSingle(about Mounted, shared bool) (Place, error) {
	m, ok := t.singles.Load(about.Kind)
	if !ok {
		return Place{}, linux.ENODEV
	}
	of := m.(*mount)
	n := &mount{fs: of.fs, device: of.device, about: &about}
	if shared {
		n.frozen = of.frozen
	}
	return t.detached(n), nil
}

// HasSingle reports whether there is a Single of a type.
func (t *Tree) HasSingle(kind string) bool {
	_, ok := t.singles.Load(kind)
	return ok
}

// DetachedBind returns the root of a new mount that shows a file or directory, with the flags of the mount that contains it. Errors:
// EINVAL unless the place is in this tree or in a detached mount.
func (t *Tree) DetachedBind(about Mounted, from Place) (Place, error) {
	t.mu.Lock()
	usable := t.mayUseMount(from.mount)
	t.mu.Unlock()
	if !usable {
		return Place{}, linux.EINVAL
	}
	about.Flags = MountFlags(from.mount.flags.Load())
	return t.detached(&mount{fs: from.mount.fs, frozen: from.mount.frozen, file: from.Node, device: from.mount.device, about: &about}), nil
}

func (t *Tree) detached(m *mount) Place {
	t.prepare(m, m.about.Flags)
	return m.root()
}

// Move attaches the mount whose root is p to a file or directory, which is of the same type. If the mount was attached to another
// place, it is moved, with the mounts inside it. path is the path of the new place. Errors: EINVAL if p is not the root of a mount that a
// program has made, or at is not in the tree; ELOOP if at is in the mount itself, which includes the place that the mount covers.
func (t *Tree) Move(p, at Place, path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at = t.cross(at) // before the checks: the mount itself may cover at
	isDir := func(p Place) bool { return p.Node.Attr().Mode.Type() == Dir }
	m, table := p.mount, maps.Clone(t.mounts.Load().at)
	from := m.at.Load()
	switch {
	case !p.IsMountRoot(), m.about == nil, from != nil && table[*from] != m, isDir(p) != isDir(at):
		return linux.EINVAL
	case at.mount.below(m):
		return linux.ELOOP
	case !t.shows(at.mount), !m.at.CompareAndSwap(from, &at): // a copy of the tree may have attached m meanwhile
		return linux.EINVAL
	}
	if from != nil {
		delete(table, *from)
	}
	old := m.about.Path
	for _, inside := range table {
		if rest, ok := strings.CutPrefix(inside.path(), old+"/"); ok && inside.below(m) {
			inside.setPath(path + "/" + rest)
		}
	}
	m.setPath(path)
	t.attach(m, at, table)
	return nil
}

// shows reports whether the tree shows a mount: it and the mounts that contain it are attached. The caller holds mu.
func (t *Tree) shows(m *mount) bool {
	table := t.mounts.Load().at
	for m != t.root {
		at := m.at.Load()
		if at == nil || table[*at] != m {
			return false
		}
		m = at.mount
	}
	return true
}

// mayUseMount reports whether a mount is in the tree or was never attached to a tree. The caller holds mu.
func (t *Tree) mayUseMount(m *mount) bool {
	return m.about != nil && m.at.Load() == nil || t.shows(m)
}

// below reports whether a mount is o, or is attached inside o.
func (m *mount) below(o *mount) bool {
	for m != o {
		at := m.at.Load()
		if at == nil {
			return false
		}
		m = at.mount
	}
	return true
}

// path returns the path of a mount that a program has made. The caller of path and setPath holds Tree.mu.
func (m *mount) path() string {
	if m.about == nil {
		return ""
	}
	return m.about.Path
}

func (m *mount) setPath(path string) {
	about := *m.about
	about.Path = path
	m.about = &about
}

// IsMountRoot reports whether the place is the root of a mount.
func (p Place) IsMountRoot() bool { return p == p.mount.root() }

// SetFlags replaces the flags of the mount whose root is p, by the result of change. With all set, it also does so for the mounts inside it.
// Errors: EINVAL if p is not the root of a mount, or the mount is attached to another tree or was removed.
func (t *Tree) SetFlags(p Place, all bool, change func(MountFlags) MountFlags) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.IsMountRoot() || !t.mayUseMount(p.mount) {
		return linux.EINVAL
	}
	set := func(m *mount) { m.flags.Store(uint32(change(MountFlags(m.flags.Load())))) }
	set(p.mount)
	for _, m := range t.mounts.Load().at {
		if all && m != p.mount && m.below(p.mount) {
			set(m)
		}
	}
	t.changes.report()
	return nil
}
