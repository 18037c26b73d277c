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

// DetachedAgain returns the root of a new mount of the file system of a place.
func (t *Tree) DetachedAgain(about Mounted, from Place) Place {
	return t.detached(&mount{fs: from.mount.fs, device: from.mount.device, about: &about})
}

// DetachedBind returns the root of a new mount that shows a file or directory, with the flags of the mount that contains it. Errors:
// EINVAL for a file outside of every tree.
func (t *Tree) DetachedBind(about Mounted, from Place) (Place, error) {
	if from.mount == nowhereMount {
		return Place{}, linux.EINVAL
	}
	about.Flags = MountFlags(from.mount.flags.Load())
	return t.detached(&mount{fs: from.mount.fs, file: from.Node, device: from.mount.device, about: &about}), nil
}

func (t *Tree) detached(m *mount) Place {
	t.prepare(m, m.about.Flags)
	return m.root()
}

// Move attaches the mount whose root is p to a file or directory, which is of the same type. If the mount was attached to another
// place, it is moved, with the mounts inside it. path is the path of the new place. Errors: EINVAL if p is not the root of a mount that a
// program has made, or at is not in the tree; ELOOP if at is in the mount itself.
func (t *Tree) Move(p, at Place, path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	isDir := func(p Place) bool { return p.Node.Attr().Mode.Type() == Dir }
	m, table := p.mount, maps.Clone(*t.mounts.Load())
	from := m.at.Load()
	switch {
	case !p.IsMountRoot(), m.about == nil, from != nil && table[*from] != m, isDir(p) != isDir(at):
		return linux.EINVAL
	case at.mount.below(m):
		return linux.ELOOP
	case !at.mount.below(t.root):
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
	t.attach(m, t.cross(at), table)
	return nil
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
// Errors: EINVAL if p is not the root of a mount.
func (t *Tree) SetFlags(p Place, all bool, change func(MountFlags) MountFlags) error {
	if !p.IsMountRoot() {
		return linux.EINVAL
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	set := func(m *mount) { m.flags.Store(uint32(change(MountFlags(m.flags.Load())))) }
	set(p.mount)
	for _, m := range *t.mounts.Load() {
		if all && m != p.mount && m.below(p.mount) {
			set(m)
		}
	}
	return nil
}
