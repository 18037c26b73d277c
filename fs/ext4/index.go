package ext4

import (
	"slices"

	"loam/abi/linux"
	"loam/fs/ext4/disk"
)

// Indexes of directories: a tree of hashes with up to three levels. Its leaves are ordinary blocks
// of names, in no order.

// path leads from the root of an index to a leaf.
type path struct {
	visited uint64 // number of leaves visited
	hash    uint32 // hash of the name to find
	bound   uint32 // the first hash of the leaf, from its index entry
	steps   []pathStep
}

type pathStep struct {
	x       disk.Index
	logical uint64 // number of the block within the directory
	kind    disk.Kind
	at      int // number of the entry in the block
}

// leaf returns the block of the directory at the end of the path.
func (p *path) leaf() uint64 {
	last := p.steps[len(p.steps)-1]
	return uint64(last.x.Block(last.at))
}

// walk returns the path to the leaf for a name.
func (n *names) walk(name string) (path, error) {
	b, err := n.block(0, disk.KindIndexRoot)
	if err != nil {
		return path{}, err
	}
	version := disk.IndexRoot(b).HashVersion()
	if !disk.KnownHash(version) {
		return path{}, errDamaged
	}
	hash, _ := n.s.geometry.Hash(version, name)
	return n.walkTo(hash)
}

// walkTo returns the path to the leaf for a hash.
func (n *names) walkTo(hash uint32) (path, error) {
	b, err := n.block(0, disk.KindIndexRoot)
	if err != nil {
		return path{}, err
	}
	root := disk.IndexRoot(b)
	p := path{hash: hash, steps: []pathStep{{root, 0, disk.KindIndexRoot, root.Search(hash)}}}
	for range root.Levels() {
		logical := p.leaf()
		b, err := n.block(logical, disk.KindIndexNode)
		if err != nil {
			return path{}, err
		}
		x := disk.IndexNode(b)
		p.steps = append(p.steps, pathStep{x, logical, disk.KindIndexNode, x.Search(hash)})
	}
	return p, nil
}

// next moves the path to the next leaf. It returns false if there is none.
func (n *names) next(p *path) (bool, error) {
	if p.visited++; p.visited > n.blocks() {
		return false, errDamaged // the tree is damaged: an index block has several parents
	}
	level := len(p.steps) - 1
	for p.steps[level].at+1 >= p.steps[level].x.Count() {
		if level--; level < 0 {
			return false, nil
		}
	}
	p.steps[level].at++
	p.bound = p.steps[level].x.Hash(p.steps[level].at)
	for level++; level < len(p.steps); level++ {
		above := p.steps[level-1]
		logical := uint64(above.x.Block(above.at))
		b, err := n.block(logical, disk.KindIndexNode)
		if err != nil {
			return false, err
		}
		p.steps[level] = pathStep{disk.IndexNode(b), logical, disk.KindIndexNode, 0}
	}
	return true, nil
}

// makeIndex adds an index to a directory of one block. Its names move to a second block.
func (n *names) makeIndex() error {
	g := n.s.geometry
	first, err := n.edit(0, disk.KindDirectory)
	if err != nil {
		return err
	}
	logical, leaf, err := n.grow(disk.KindDirectory)
	if err != nil {
		return err
	}
	g.InitDirectory(leaf)
	dots := 0
	for e, ok := disk.NextEntry(first, 0); ok; e, ok = disk.NextEntry(first, e.Offset+e.Length) {
		if dots < 2 {
			if string(e.Name) != []string{".", ".."}[dots] || e.Offset != []int{0, 12}[dots] {
				return errDamaged
			}
			dots++
		} else if !g.AddEntry(leaf, string(e.Name), e.Inode, e.Type) {
			return errDamaged
		}
	}
	if dots < 2 {
		return errDamaged
	}
	g.InitRoot(first, g.HashVersion, uint32(logical))
	number, err := n.place(0)
	if err != nil {
		return err
	}
	b := n.s.cache.find(number)
	n.o.record(b)
	b.set(n.structure(disk.KindIndexRoot))
	n.i.SetFlags(n.i.Flags() | disk.FlagIndex)
	return nil
}

// split moves the half of a leaf's names that has the larger hashes to a new leaf. It returns the leaf that
// covers the path's hash.
func (n *names) split(p *path, b []byte) ([]byte, error) {
	if err := n.makeRoom(p); err != nil {
		return nil, err
	}
	g := n.s.geometry
	root, err := n.block(0, disk.KindIndexRoot)
	if err != nil {
		return nil, err
	}
	version := disk.IndexRoot(root).HashVersion()
	logical, upper, err := n.grow(disk.KindDirectory)
	if err != nil {
		return nil, err
	}
	bound, ok := g.SplitLeaf(b, upper, version)
	if !ok {
		return nil, linux.ENOSPC
	}
	last := &p.steps[len(p.steps)-1]
	goesUp := p.hash >= bound&^1
	x, err := n.editIndex(last)
	if err != nil {
		return nil, err
	}
	x.Insert(last.at, bound, uint32(logical))
	if goesUp {
		return upper, nil
	}
	return b, nil
}

// editIndex returns an index block for writing.
func (n *names) editIndex(step *pathStep) (disk.Index, error) {
	b, err := n.edit(step.logical, step.kind)
	if err != nil {
		return disk.Index{}, err
	}
	if step.kind == disk.KindIndexRoot {
		step.x = disk.IndexRoot(b)
	} else {
		step.x = disk.IndexNode(b)
	}
	return step.x, nil
}

// makeRoom splits the full index blocks of a path, so that the lowest has room for an entry.
func (n *names) makeRoom(p *path) error {
	for {
		level := len(p.steps) - 1
		for level >= 0 && p.steps[level].x.Full() {
			level--
		}
		switch {
		case level == len(p.steps)-1:
			return nil
		case level < 0:
			if err := n.deepen(p); err != nil {
				return err
			}
		default:
			if err := n.splitIndex(p, level+1); err != nil {
				return err
			}
		}
	}
}

// deepen moves the entries of the root to a new node, which adds a level.
func (n *names) deepen(p *path) error {
	root, err := n.editIndex(&p.steps[0])
	if err != nil {
		return err
	}
	if root.Levels() >= n.s.geometry.IndexLevels() {
		return linux.ENOSPC
	}
	logical, b, err := n.grow(disk.KindIndexNode)
	if err != nil {
		return err
	}
	x := n.s.geometry.InitNode(b)
	root.MoveTail(0, x)
	root.Relink(0, uint32(logical))
	root.SetLevels(root.Levels() + 1)
	at := p.steps[0].at
	p.steps[0].at = 0
	p.steps = slices.Insert(p.steps, 1, pathStep{x, logical, disk.KindIndexNode, at})
	return nil
}

// splitIndex moves half of the entries of a full node to a new node. The level above must have room
// for an entry.
func (n *names) splitIndex(p *path, level int) error {
	x, err := n.editIndex(&p.steps[level])
	if err != nil {
		return err
	}
	above, err := n.editIndex(&p.steps[level-1])
	if err != nil {
		return err
	}
	logical, b, err := n.grow(disk.KindIndexNode)
	if err != nil {
		return err
	}
	upper := n.s.geometry.InitNode(b)
	middle := x.Count() / 2
	hash := x.MoveTail(middle, upper)
	above.Insert(p.steps[level-1].at, hash, uint32(logical))
	if at := p.steps[level].at; at >= middle {
		p.steps[level-1].at++
		p.steps[level] = pathStep{upper, logical, disk.KindIndexNode, at - middle}
	}
	return nil
}
