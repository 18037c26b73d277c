package ext4

import (
	"loam/abi/linux"
	"loam/fs/ext4/disk"
)

// tree changes the extents of a file in an op. Its nodes are a B-tree whose root is in the inode.
// The key of an entry is the first block of the file that it covers.
type tree struct {
	o    *op
	ino  uint32
	i    disk.Inode // the inode that contains the root of the tree
	edit bool       // the inode may be changed
	goal uint64     // block near which new nodes are allocated
}

// tree returns the extents of a file for writing.
func (o *op) tree(ino uint32) (*tree, error) {
	t := &tree{o: o, ino: ino}
	return t, t.begin()
}

// begin prepares changes of the tree or of the size of the file. A file with a block map is converted to extents.
func (t *tree) begin() (err error) {
	if t.edit {
		return nil
	}
	if t.i, err = t.o.inode(t.ino); err != nil {
		return err
	}
	t.edit, t.goal = true, t.o.s.goalOf(t.ino)
	if t.i.Flags()&disk.FlagExtents == 0 {
		return t.convert()
	}
	if t.o.s.geometry.CheckExtents(t.root(), -1) != nil {
		return errDamaged
	}
	return nil
}

// goalOf returns the preferred block for the first blocks of a file, in the group of its inode.
func (s *FileSystem) goalOf(ino uint32) uint64 {
	group, _ := s.geometry.InodeGroup(ino)
	return s.geometry.GroupStart(group)
}

func (t *tree) root() disk.Extents { return t.i.Area() }

// node returns a node below the root for writing.
func (t *tree) node(number uint64, depth int) (disk.Extents, error) {
	b, err := t.o.edit(number, t.structure())
	if x := disk.Extents(b); err != nil || x.Depth() == depth {
		return x, err
	}
	return nil, errDamaged
}

// structure returns the structure of a node.
func (t *tree) structure() disk.Structure {
	return disk.Structure{Kind: disk.KindExtents, Owner: owner(t.ino, t.i)}
}

// addSectors adds blocks, which may be negative, to the file's allocated size.
func (t *tree) addSectors(blocks int64) {
	g := t.o.s.geometry
	t.i.SetSectors(g, t.i.Sectors(g)+uint64(blocks<<(g.BlockBits-9)))
}

// make allocates an empty node of a depth.
func (t *tree) make(depth int) (disk.Extents, uint64, error) {
	number, _, err := t.o.allocate(t.goal, 1)
	if err != nil {
		return nil, 0, err
	}
	t.addSectors(1)
	return disk.InitExtents(t.o.make(number, t.structure()), depth), number, nil
}

// sibling is the new node after a full node was split.
type sibling struct {
	key   uint32
	block uint64
}

// insert adds an extent in a hole.
func (t *tree) insert(e disk.Extent) error {
	_, err := t.insertAt(t.root(), true, e)
	return err
}

func (t *tree) insertAt(x disk.Extents, isRoot bool, e disk.Extent) (*sibling, error) {
	if x.Depth() == 0 {
		if x.Merge(e) {
			return nil, nil
		}
		return t.enter(x, isRoot, x.Search(e.Logical)+1, func(x disk.Extents, at int) {
			x.Open(at)
			x.SetExtent(at, e)
		})
	}
	at := max(x.Search(e.Logical), 0)
	child, err := t.node(x.Child(at), x.Depth()-1)
	if err != nil {
		return nil, err
	}
	s, err := t.insertAt(child, false, e)
	if err != nil {
		return nil, err
	}
	x.SetKey(at, child.Key(0))
	if s == nil {
		return nil, nil
	}
	return t.enter(x, isRoot, at+1, func(x disk.Extents, at int) {
		x.Open(at)
		x.SetChild(at, s.key, s.block)
	})
}

// enter inserts an entry at index at of a node. If the node is full and is the root, its entries
// move one level down first. Another full node is split in the middle, or at its end if the entry
// is appended, because files usually grow there.
func (t *tree) enter(x disk.Extents, isRoot bool, at int, put func(disk.Extents, int)) (*sibling, error) {
	if x.Count() < x.Max() {
		put(x, at)
		return nil, nil
	}
	if isRoot && x.Depth() >= disk.MaxDepth {
		return nil, linux.EFBIG
	}
	y, number, err := t.make(x.Depth())
	if err != nil {
		return nil, err
	}
	if isRoot {
		depth := x.Depth()
		x.MoveTail(0, y)
		put(y, at)
		x = disk.InitExtents(x, depth+1)
		x.Open(0)
		x.SetChild(0, y.Key(0), number)
		return nil, nil
	}
	middle := x.Count() / 2
	if at == x.Count() {
		middle = at
	}
	x.MoveTail(middle, y)
	if at >= middle && (at > middle || y.Count() == 0) {
		put(y, at-middle)
	} else {
		put(x, at)
	}
	return &sibling{y.Key(0), number}, nil
}

// remove removes the blocks in a range from a file. If the function free is not nil, it
// is called for each removed extent.
func (t *tree) remove(from, to uint64, free func(disk.Extent) error) error {
	r, err := t.o.s.find(t.ino, t.i, from)
	if err != nil {
		return err
	}
	if from > 0 && r.physical != 0 && r.logical+r.length > to {
		// The range ends inside the extent: the part after the range becomes a separate extent.
		tail := disk.Extent{
			Logical: uint32(to), Length: uint32(r.logical + r.length - to), Physical: r.physical + to - from, Unwritten: r.unwritten,
		}
		if err := t.removeAll(from, r.logical+r.length, nil); err != nil {
			return err
		}
		if free != nil {
			gone := disk.Extent{Logical: uint32(from), Length: uint32(to - from), Physical: r.physical, Unwritten: r.unwritten}
			if err := free(gone); err != nil {
				return err
			}
		}
		return t.insert(tail)
	}
	return t.removeAll(from, to, free)
}

func (t *tree) removeAll(from, to uint64, free func(disk.Extent) error) error {
	if err := t.removeAt(t.root(), from, to, free); err != nil {
		return err
	}
	return t.shrink()
}

func (t *tree) removeAt(x disk.Extents, from, to uint64, free func(disk.Extent) error) error {
	if x.Depth() == 0 {
		return x.Remove(from, to, free)
	}
	first := max(x.Search(uint32(min(from, disk.MaxLogical))), 0)
	at := first
	for at < x.Count() && uint64(x.Key(at)) < to {
		child, err := t.node(x.Child(at), x.Depth()-1)
		if err != nil {
			return err
		}
		if err := t.removeAt(child, from, to, free); err != nil {
			return err
		}
		if child.Count() > 0 {
			x.SetKey(at, child.Key(0))
			at++
			continue
		}
		if err := t.dropNode(x.Child(at)); err != nil {
			return err
		}
		x.Delete(at, 1)
	}
	return t.join(x, at-1)
}

func (t *tree) dropNode(number uint64) error {
	t.addSectors(-1)
	return t.o.free(number, 1, true)
}

// join combines the nodes below the entries with the indices at and at+1 into one, if
// their entries fill at most half of a node.
func (t *tree) join(x disk.Extents, at int) error {
	if at < 0 || at+1 >= x.Count() {
		return nil
	}
	left, err := t.node(x.Child(at), x.Depth()-1)
	if err != nil {
		return err
	}
	right, err := t.node(x.Child(at+1), x.Depth()-1)
	if err != nil {
		return err
	}
	if left.Count()+right.Count() > left.Max()/2 {
		return nil
	}
	right.MoveTail(0, left)
	if err := t.dropNode(x.Child(at + 1)); err != nil {
		return err
	}
	x.Delete(at+1, 1)
	return nil
}

// shrink removes levels that the tree no longer needs.
func (t *tree) shrink() error {
	for x := t.root(); x.Depth() > 0; x = t.root() {
		switch {
		case x.Count() == 0:
			disk.InitExtents(x, 0)
			return nil
		case x.Count() > 1:
			return nil
		}
		number := x.Child(0)
		child, err := t.node(number, x.Depth()-1)
		if err != nil {
			return err
		}
		if child.Count() > disk.RootEntries {
			return nil
		}
		child.MoveTail(0, disk.InitExtents(x, child.Depth()))
		if err := t.dropNode(number); err != nil {
			return err
		}
	}
	return nil
}

// freeData frees the blocks of an extent. It is an argument of remove.
func (t *tree) freeData(e disk.Extent) error {
	t.addSectors(-int64(e.Length))
	return t.o.free(e.Physical, uint64(e.Length), t.o.s.isMetadata(t.i))
}

// convert replaces a block map by extents.
func (t *tree) convert() error {
	s := t.o.s
	per := uint64(s.geometry.BlockSize / 4)
	end := min(t.i.Size()>>s.geometry.BlockBits+1, 12+per+per*per+per*per*per, disk.MaxLogical)
	var all []disk.Extent
	for at, blocks := uint64(0), uint64(0); at < end; {
		r, err := s.find(t.ino, t.i, at)
		if err != nil {
			return err
		}
		if at += r.length; r.physical == 0 {
			continue
		}
		if blocks++; blocks > s.geometry.Blocks {
			return errDamaged
		}
		e := disk.Extent{Logical: uint32(r.logical), Length: 1, Physical: r.physical}
		if n := len(all); n > 0 && e.Follows(all[n-1]) {
			all[n-1].Length++
		} else {
			all = append(all, e)
		}
	}
	for level, at := range []int{48, 52, 56} {
		if err := t.freeMaps(disk.BlockNumber(t.i.Area()[at:]), level); err != nil {
			return err
		}
	}
	disk.InitExtents(t.i.Area(), 0)
	t.i.SetFlags(t.i.Flags() | disk.FlagExtents)
	for _, e := range all {
		if err := t.insert(e); err != nil {
			return err
		}
	}
	return nil
}

// freeMaps frees an indirect block, and the indirect blocks that it refers to.
func (t *tree) freeMaps(number uint64, level int) error {
	if number == 0 {
		return nil
	}
	b, err := t.o.s.image(number, disk.Structure{Kind: disk.KindBlockMap})
	if err != nil {
		return err
	}
	for at := 0; at < len(b) && level > 0; at += 4 {
		if err := t.freeMaps(disk.BlockNumber(b[at:]), level-1); err != nil {
			return err
		}
	}
	return t.dropNode(number)
}
