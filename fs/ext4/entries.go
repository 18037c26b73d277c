package ext4

import (
	"cmp"
	"math"
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
)

// Names in directories: finding, adding and removing them, with and without an index.

// names is a directory that an op changes, or that is read under a lock.
type names struct {
	s   *FileSystem
	o   *op // the operation that changes the directory; nil: the directory is only read
	ino uint32
	i   disk.Inode
}

func (n *names) owner() disk.Owner { return owner(n.ino, n.i) }

// blocks returns the number of blocks of the directory.
func (n *names) blocks() uint64 { return n.i.Size() >> n.s.geometry.BlockBits }

func (n *names) indexed() bool { return n.i.Flags()&disk.FlagIndex != 0 }

// place returns the block on the device that holds a block of the directory. A directory has no
// holes.
func (n *names) place(logical uint64) (uint64, error) {
	if logical >= n.blocks() || logical >= n.s.geometry.Blocks {
		return 0, errDamaged
	}
	r, err := n.s.find(n.ino, n.i, logical)
	if err == nil && r.zeros() {
		err = errDamaged
	}
	return r.physical, err
}

// block returns a block of the directory for reading, checked as kind k.
func (n *names) block(logical uint64, k disk.Kind) ([]byte, error) {
	number, err := n.place(logical)
	if err != nil {
		return nil, err
	}
	return n.s.image(number, n.structure(k))
}

// edit returns a block of the directory for writing, checked as kind k.
func (n *names) edit(logical uint64, k disk.Kind) ([]byte, error) {
	number, err := n.place(logical)
	if err != nil {
		return nil, err
	}
	return n.o.edit(number, n.structure(k))
}

// structure returns the structure of a block of the directory.
func (n *names) structure(k disk.Kind) disk.Structure {
	return disk.Structure{Kind: k, Owner: n.owner()}
}

// firstKind returns the kind of the directory's first block.
func (n *names) firstKind() disk.Kind {
	if n.indexed() {
		return disk.KindIndexRoot
	}
	return disk.KindDirectory
}

// found is the location of a name in a directory.
type found struct {
	logical uint64
	kind    disk.Kind
	entry   disk.DirEntry
}

// find returns the location of a name. Errors: ENOENT.
func (n *names) find(name string) (found, error) {
	if n.i.Flags()&disk.FlagInlineData != 0 {
		return n.findInline(name)
	}
	if !n.indexed() || name == "." || name == ".." {
		end := n.blocks()
		if n.indexed() {
			end = 1
		}
		for at := range end {
			k := disk.KindDirectory
			if at == 0 {
				k = n.firstKind()
			}
			b, err := n.block(at, k)
			if err != nil {
				return found{}, err
			}
			if e, ok := disk.FindEntry(b, name); ok {
				return found{at, k, e}, nil
			}
		}
		return found{}, linux.ENOENT
	}
	p, err := n.walk(name)
	if err != nil {
		return found{}, err
	}
	for {
		b, err := n.block(p.leaf(), disk.KindDirectory)
		if err != nil {
			return found{}, err
		}
		if e, ok := disk.FindEntry(b, name); ok {
			return found{p.leaf(), disk.KindDirectory, e}, nil
		}
		more, err := n.next(&p)
		if err != nil {
			return found{}, err
		}
		if !more || p.bound&^1 != p.hash || p.bound&1 == 0 {
			return found{}, linux.ENOENT
		}
	}
}

// add adds a name that does not exist. Errors: ENOSPC.
func (n *names) add(name string, ino uint32, kind uint8) error {
	n.publish(name, ino)
	if !n.indexed() {
		return n.addLinear(name, ino, kind)
	}
	p, err := n.walk(name)
	if err != nil {
		return err
	}
	b, err := n.edit(p.leaf(), disk.KindDirectory)
	if err != nil {
		return err
	}
	if n.s.geometry.AddEntry(b, name, ino, kind) {
		return nil
	}
	if b, err = n.split(&p, b); err != nil {
		return err
	}
	if !n.s.geometry.AddEntry(b, name, ino, kind) {
		return linux.ENOSPC // the names with this hash fill a whole block, so that the block cannot be split
	}
	return nil
}

func (n *names) addLinear(name string, ino uint32, kind uint8) error {
	g := n.s.geometry
	for at := range n.blocks() {
		b, err := n.edit(at, disk.KindDirectory)
		if err != nil {
			return err
		}
		if g.AddEntry(b, name, ino, kind) {
			return nil
		}
	}
	if n.blocks() == 1 && n.s.hasIndexes {
		if err := n.makeIndex(); err != nil {
			return err
		}
		return n.add(name, ino, kind)
	}
	_, b, err := n.grow(disk.KindDirectory)
	if err != nil {
		return err
	}
	g.InitDirectory(b)
	g.AddEntry(b, name, ino, kind)
	return nil
}

// grow appends a block to the directory.
func (n *names) grow(k disk.Kind) (logical uint64, b []byte, err error) {
	t, err := n.o.tree(n.ino)
	if err != nil {
		return 0, nil, err
	}
	logical = n.blocks()
	if logical >= math.MaxInt32 {
		return 0, nil, linux.ENOSPC
	}
	number, _, err := t.fill(logical, 1, false)
	if err != nil {
		return 0, nil, err
	}
	n.i.SetSize((logical + 1) << n.s.geometry.BlockBits)
	return logical, n.o.make(number, n.structure(k)), nil
}

// editFound returns the block that contains a found name, for writing.
func (n *names) editFound(f found) ([]byte, error) { return n.edit(f.logical, f.kind) }

func (n *names) key() fileKey { return fileKey{Inode: n.ino, Generation: n.i.Generation()} }

// publish makes later lookups find an inode by a name, or none if ino is 0, when the op has succeeded.
func (n *names) publish(name string, ino uint32) {
	if name != ".." {
		n.o.named = append(n.o.named, naming{n.key(), name, ino})
	}
}

// remove removes a name.
func (n *names) remove(f found) error {
	n.publish(string(f.entry.Name), 0)
	b, err := n.editFound(f)
	if err == nil {
		disk.RemoveEntry(b, f.entry)
	}
	return err
}

// relink makes a name refer to another inode, and stores its type.
func (n *names) relink(f found, ino uint32, kind uint8) error {
	n.publish(string(f.entry.Name), ino)
	b, err := n.editFound(f)
	if err == nil {
		n.s.geometry.SetEntry(b, f.entry, ino, kind)
	}
	return err
}

// empty reports whether the directory has no names except "." and "..".
func (n *names) empty() (bool, error) {
	if n.i.Flags()&disk.FlagInlineData != 0 {
		list, err := n.inline()
		return len(list) == 0, err
	}
	empty := true
	err := n.each(func(e disk.DirEntry) { empty = empty && (string(e.Name) == "." || string(e.Name) == "..") })
	return empty, err
}

// each calls f for every entry of every leaf, including "." and "..".
func (n *names) each(f func(disk.DirEntry)) error {
	if n.indexed() {
		p, err := n.walkTo(0)
		for more := err == nil; more; {
			if err := n.eachIn(p.leaf(), f); err != nil {
				return err
			}
			if more, err = n.next(&p); err != nil {
				return err
			}
		}
		return err
	}
	for at := range n.blocks() {
		if err := n.eachIn(at, f); err != nil {
			return err
		}
	}
	return nil
}

func (n *names) eachIn(logical uint64, f func(disk.DirEntry)) error {
	b, err := n.block(logical, disk.KindDirectory)
	if err != nil {
		return err
	}
	for e, ok := disk.NextEntry(b, 0); ok; e, ok = disk.NextEntry(b, e.Offset+e.Length) {
		f(e)
	}
	return nil
}

// cursor returns the position of a name in a listing. It is derived from the name's hash, so it
// does not change when leaves are split. Position 0 is before all names.
func (n *names) cursor(version uint8, name string) uint64 {
	major, minor := n.s.geometry.Hash(version, name)
	if version%3 == disk.HashLegacy {
		minor = disk.CRC(0, []byte(name))
	}
	return min(uint64(major>>1)<<32|uint64(minor), math.MaxInt64-16) + 1
}

// atOnce is the maximum number of entries that list returns.
const atOnce = 4096

func sortEntries(all []fs.Entry) {
	slices.SortFunc(all, func(a, b fs.Entry) int { return cmp.Compare(a.Cursor, b.Cursor) })
}

// list returns the next entries after a cursor, in the order of cursors. It reads one leaf or more
// if the directory has an index, and all leaves otherwise. more is false if no entries follow.
func (n *names) list(cursor uint64) (entries []fs.Entry, more bool, err error) {
	version, cut, limit := n.s.geometry.HashVersion, false, uint64(math.MaxUint64)
	collect := func(e disk.DirEntry) {
		name := string(e.Name)
		if name == "." || name == ".." {
			return
		}
		if at := n.cursor(version, name); at > cursor && at < limit {
			entries = append(entries, fs.Entry{Name: name, Inode: uint64(e.Inode), Type: n.s.entryMode(e), Cursor: at})
		}
		if len(entries) == 2*atOnce {
			sortEntries(entries)
			entries, cut, limit = entries[:atOnce], true, entries[atOnce].Cursor // the next call of list returns the later entries
		}
	}
	switch {
	case n.i.Flags()&disk.FlagInlineData != 0:
		all, err := n.inline()
		if err != nil {
			return nil, false, err
		}
		for _, e := range all {
			collect(e)
		}
	case !n.indexed():
		if err := n.each(collect); err != nil {
			return nil, false, err
		}
	default:
		if more, err = n.listIndexed(cursor, &version, &entries, collect); err != nil {
			return nil, false, err
		}
	}
	sortEntries(entries)
	return entries, more || cut, nil
}

// listIndexed collects the entries of leaves until there are some. It then continues as long as the
// next leaf has names with the same hash as the last one.
func (n *names) listIndexed(cursor uint64, version *uint8, entries *[]fs.Entry, collect func(disk.DirEntry)) (bool, error) {
	root, err := n.block(0, disk.KindIndexRoot)
	if err != nil {
		return false, err
	}
	*version = disk.IndexRoot(root).HashVersion()
	hash := uint32(0)
	if cursor > 0 {
		hash = uint32((cursor-1)>>32) << 1
	}
	p, err := n.walkTo(hash)
	if err != nil {
		return false, err
	}
	for {
		if err := n.eachIn(p.leaf(), collect); err != nil {
			return false, err
		}
		more, err := n.next(&p)
		if err != nil || !more {
			return false, err
		}
		if len(*entries) > 0 && p.bound&1 == 0 {
			return true, nil
		}
	}
}

// entryMode returns the type of a file, from its directory entry or its inode.
func (s *FileSystem) entryMode(e disk.DirEntry) fs.Mode {
	if mode := fs.Mode(disk.ModeOf(e.Type)); mode != 0 {
		return mode
	}
	i, err := s.inode(e.Inode)
	if err != nil {
		return 0
	}
	return fs.Mode(i.Mode()).Type()
}

// inline returns the entries of a directory that is stored in its inode ("Inline Directories"): the
// parent's number, followed by entries in the rest of the area and in an attribute.
func (n *names) inline() ([]disk.DirEntry, error) {
	b, err := n.i.InlineData()
	if err != nil || len(b) < 4 {
		return nil, errDamaged
	}
	first := b[4:min(len(b), disk.BlockArea)]
	var all []disk.DirEntry
	for _, part := range [][]byte{first, b[4+len(first):]} {
		if n.s.geometry.CheckDirectory(part) != nil {
			return nil, errDamaged
		}
		for e, ok := disk.NextEntry(part, 0); ok; e, ok = disk.NextEntry(part, e.Offset+e.Length) {
			all = append(all, e)
		}
	}
	return all, nil
}

func (n *names) findInline(name string) (found, error) {
	all, err := n.inline()
	if err != nil {
		return found{}, err
	}
	if name == ".." {
		return found{entry: disk.DirEntry{Inode: uint32(disk.BlockNumber(n.i.Area()))}}, nil
	}
	for _, e := range all {
		if string(e.Name) == name {
			return found{entry: e}, nil
		}
	}
	return found{}, linux.ENOENT
}
