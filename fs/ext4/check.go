package ext4

import (
	"fmt"
	"slices"

	"loam/block"
	"loam/fs"
	"loam/fs/ext4/disk"
)

// Checking a whole file system that is not mounted. Every structure in use is read and compared
// with the structures that refer to it. The device is not changed: a journal is recovered in memory
// first.

// Findings are the result of Check.
type Findings struct {
	Summary     disk.Summary
	Recovered   bool // the journal was not empty, because the file system was not unmounted
	Files       uint64
	Directories uint64
	Blocks      uint64   // number of blocks in use
	Problems    []string // problems that were found, at most mostProblems
	More        int      // number of further problems, which are not listed
}

// OK reports whether no problem was found.
func (f *Findings) OK() bool { return len(f.Problems) == 0 }

// mostProblems bounds Findings.Problems.
const mostProblems = 100

// checker is the state of one check.
type checker struct {
	s        *FileSystem
	super    disk.Super
	findings *Findings
	used     []byte            // bitmap of the blocks that are in use
	inodes   []byte            // bitmap of the inodes that are in use
	links    map[uint32]uint32 // number of names found for each inode, including "." and ".."
	parents  map[uint32]uint32 // parent of each directory
	shared   map[uint64]uint32 // number of references to each block of attributes
	orphans  map[uint32]bool
	clusters bool // the use of blocks is not checked (bigalloc)
}

// Check checks a file system. It returns an error if the file system could not be checked; problems
// of the file system are in the findings.
func Check(d block.Device) (*Findings, error) {
	io := block.NewIO(d)
	f := &Findings{}
	var err error
	if f.Summary, err = disk.Examine(sectorReader{io}, d.Size()); err != nil {
		return f, err
	}
	f.Recovered = f.Summary.Dirty
	s, err := Open(d, Config{ReadOnly: true, CacheBytes: 256 << 20})
	if err != nil {
		return f, err
	}
	defer s.Close()
	s.mu.RLock()
	defer s.mu.RUnlock()
	f.Summary.Blocks = s.geometry.Blocks // the journal may have a larger file system
	c := &checker{
		s: s, findings: f, used: make([]byte, (s.geometry.Blocks+7)/8), inodes: make([]byte, s.geometry.Inodes/8+1),
		links: map[uint32]uint32{}, parents: map[uint32]uint32{}, shared: map[uint64]uint32{}, orphans: map[uint32]bool{},
	}
	if c.super, err = s.super(); err != nil {
		return f, err
	}
	c.clusters = c.super.ROCompat()&disk.ROCompatBigalloc != 0
	c.checkAll()
	return f, nil
}

// sectorReader reads a superblock from a device that supports only reads of whole sectors.
type sectorReader struct{ io *block.IO }

func (r sectorReader) ReadAt(p []byte, at int64) (int, error) {
	b := make([]byte, 4096)
	if _, err := r.io.ReadAt(b, 0); err != nil {
		return 0, err
	}
	return copy(p, b[min(at, 4096):]), nil
}

func (c *checker) problem(format string, args ...any) {
	if len(c.findings.Problems) == mostProblems {
		c.findings.More++
		return
	}
	c.findings.Problems = append(c.findings.Problems, fmt.Sprintf(format, args...))
}

func (c *checker) checkAll() {
	if c.super.State()&disk.StateErrors != 0 {
		c.problem("the file system is marked as damaged")
	}
	list, err := c.s.orphanList(c.super)
	if err != nil {
		c.problem("the list of deleted files that are open is damaged")
	}
	for _, ino := range list {
		c.orphans[ino] = true
	}
	c.addOrphanFile()
	for group := range c.s.geometry.Groups {
		c.claimGroup(group)
	}
	for group := range c.s.geometry.Groups {
		c.checkInodes(group)
	}
	c.checkNames()
	c.checkShared()
	for group := range c.s.geometry.Groups {
		c.checkGroup(group)
	}
}

// addOrphanFile adds the inodes that the orphan file lists.
func (c *checker) addOrphanFile() {
	if c.super.ROCompat()&disk.ROCompatOrphanPresent == 0 {
		return
	}
	file := c.super.OrphanInode()
	i, err := c.s.inode(file)
	for at := uint64(0); err == nil && at < min(i.Size()>>c.s.geometry.BlockBits, c.s.geometry.Blocks); at++ {
		var r run
		if r, err = c.s.find(file, i, at); err != nil || r.zeros() {
			continue
		}
		var b *buffer
		if b, err = c.s.content(r.physical); err != nil {
			break
		}
		var all []uint32
		all, err = c.s.geometry.Sums.Orphans(b.data, r.physical, owner(file, i))
		for _, ino := range all {
			c.orphans[ino] = true
		}
	}
	if err != nil {
		c.problem("the orphan file is damaged")
	}
}

// claim marks blocks as in use. If one is in use already, claim reports a problem and returns false.
func (c *checker) claim(number, n uint64, format string, args ...any) bool {
	for i := number; i < number+n && i < c.s.geometry.Blocks; i++ {
		if c.used[i/8]>>(i%8)&1 != 0 && !c.clusters {
			c.problem("%s: block %d is used by something else, too", fmt.Sprintf(format, args...), i)
			return false
		}
		c.used[i/8] |= 1 << (i % 8)
	}
	return true
}

// claimGroup claims the blocks of a group's own metadata.
func (c *checker) claimGroup(group uint32) {
	g := c.s.geometry
	c.claim(g.GroupStart(group), uint64(min(g.Overhead(group), g.GroupBlocks(group))), "group %d", group)
	d, err := c.s.descriptor(group)
	if err != nil {
		c.problem("group %d: its descriptor: %v", group, err)
		return
	}
	c.claim(d.BlockBitmap(), 1, "the block bitmap of group %d", group)
	c.claim(d.InodeBitmap(), 1, "the inode bitmap of group %d", group)
	c.claim(d.InodeTable(), g.TableBlocks(), "the inode table of group %d", group)
}

// checkInodes checks the inodes of a group that are in use.
func (c *checker) checkInodes(group uint32) {
	g := c.s.geometry
	d, err := c.s.descriptor(group)
	if err != nil {
		return
	}
	bits := make([]byte, g.BlockSize)
	if g.FreshInodeBitmap(bits); d.Flags()&disk.InodesUninit == 0 {
		if bits, err = c.s.image(d.InodeBitmap(), disk.Structure{Kind: disk.KindInodeBitmap, Index: group}); err != nil {
			c.problem("the inode bitmap of group %d: %v", group, err)
			return
		}
	}
	if pad := uint32(8 * len(bits)); disk.NextClear(bits, g.InodesPerGroup, pad) < pad {
		c.problem("the inode bitmap of group %d: its padding is not set", group)
	}
	free, dirs := uint32(0), uint32(0)
	for bit := range g.InodesPerGroup {
		ino := group*g.InodesPerGroup + bit + 1
		if !disk.Bit(bits, bit) {
			free++
			continue
		}
		disk.SetBits(c.inodes, ino, 1)
		if c.checkInode(ino) {
			dirs++
		}
	}
	if free != d.FreeInodes() {
		c.problem("group %d: %d inodes are free, its descriptor counts %d", group, free, d.FreeInodes())
	}
	if dirs != d.Directories() {
		c.problem("group %d: it has %d directories, its descriptor counts %d", group, dirs, d.Directories())
	}
}

// checkInode checks one inode and claims its blocks. It reports whether it is a directory.
func (c *checker) checkInode(ino uint32) (isDir bool) {
	g := c.s.geometry
	i, err := c.s.inode(ino)
	if err != nil {
		c.problem("inode %d: it is damaged", ino)
		return false
	}
	reserved := ino < g.FirstInode && ino != disk.RootInode
	if i.Links() == 0 {
		if !reserved && !c.orphans[ino] && ino != c.super.OrphanInode() {
			c.problem("inode %d: it is in use without a link", ino)
		}
		if !c.orphans[ino] {
			return false
		}
	}
	kind := fs.Mode(i.Mode()).Type()
	isDir = kind == fs.Dir
	switch {
	case isDir:
		c.findings.Directories++
	case !reserved:
		c.findings.Files++
	}
	if disk.TypeOf(i.Mode()) == disk.TypeUnknown && !reserved {
		c.problem("inode %d: its type is unknown", ino)
	}
	if ino == disk.ResizeInode {
		c.checkResize(disk.BlockNumber(i.Area()[4*13:]))
		return false
	}
	blocks, err := c.claimFile(ino, i, kind)
	if err != nil {
		c.problem("inode %d: the map of its blocks is damaged", ino)
		return isDir
	}
	if n := i.AttrBlock(); n != 0 {
		blocks++
		c.shared[n]++
	}
	if _, err := c.s.attributes(i); err != nil {
		c.problem("inode %d: its attributes are damaged", ino)
	}
	if want := blocks << (g.BlockBits - 9); i.Sectors(g) != want && !c.clusters {
		c.problem("inode %d: it has %d sectors, and counts %d", ino, want, i.Sectors(g))
	}
	return isDir
}

// checkResize checks a block that the resize inode refers to: it lists blocks that are reserved for
// group descriptors.
func (c *checker) checkResize(number uint64) {
	g := c.s.geometry
	if number == 0 || c.clusters {
		return
	}
	if !g.Holds(number, 1) {
		c.problem("the resize inode is damaged")
		return
	}
	c.claim(number, 1, "the resize inode")
	b, err := c.s.image(number, disk.Structure{Kind: disk.KindBlockMap})
	first := g.FirstData + 1
	last := first + uint64(g.Overhead(0)) - 1
	for at := 0; err == nil && at < len(b); at += 4 {
		if n := disk.BlockNumber(b[at:]); n != 0 && (n < first || n >= last) {
			err = errDamaged
		}
	}
	if err != nil {
		c.problem("the resize inode is damaged")
	}
}

// claimFile claims the blocks of a file, and returns their number.
func (c *checker) claimFile(ino uint32, i disk.Inode, kind fs.Mode) (blocks uint64, err error) {
	switch {
	case i.Flags()&disk.FlagInlineData != 0:
		_, err := i.InlineData()
		return 0, err
	case i.Flags()&disk.FlagExtents != 0:
		x := disk.Extents(i.Area())
		if c.s.geometry.CheckExtents(x, -1) != nil {
			return 0, errDamaged
		}
		return c.claimExtents(ino, i, x)
	case !mapped(i):
		return 0, nil
	}
	for n := range 15 {
		level := max(0, n-11)
		more, err := c.claimMap(ino, disk.BlockNumber(i.Area()[4*n:]), level)
		if err != nil {
			return 0, err
		}
		blocks += more
	}
	return blocks, nil
}

func (c *checker) claimExtents(ino uint32, i disk.Inode, x disk.Extents) (blocks uint64, err error) {
	for n := range x.Count() {
		if x.Depth() == 0 {
			e := x.Extent(n)
			c.claim(e.Physical, uint64(e.Length), "inode %d", ino)
			blocks += uint64(e.Length)
			continue
		}
		if !c.claim(x.Child(n), 1, "inode %d", ino) {
			continue // following the block could loop
		}
		below, err := c.s.node(x.Child(n), x.Depth()-1, owner(ino, i))
		if err != nil {
			return 0, err
		}
		more, err := c.claimExtents(ino, i, below)
		if err != nil {
			return 0, err
		}
		blocks += 1 + more
	}
	return blocks, nil
}

// claimMap claims a block of a file without extents. If level is above 0, the block lists further
// blocks, which claimMap claims too.
func (c *checker) claimMap(ino uint32, number uint64, level int) (blocks uint64, err error) {
	if number == 0 {
		return 0, nil
	}
	if !c.s.geometry.Holds(number, 1) {
		return 0, errDamaged
	}
	if !c.claim(number, 1, "inode %d", ino) || level == 0 {
		return 1, nil // following the block could loop
	}
	b, err := c.s.image(number, disk.Structure{Kind: disk.KindBlockMap})
	if err != nil {
		return 0, err
	}
	blocks = 1
	for at := 0; at < len(b); at += 4 {
		more, err := c.claimMap(ino, disk.BlockNumber(b[at:]), level-1)
		if err != nil {
			return 0, err
		}
		blocks += more
	}
	return blocks, nil
}

// checkNames reads all directories, starting at the root, and compares the number of names of each
// file with its link count.
func (c *checker) checkNames() {
	c.parents[disk.RootInode] = disk.RootInode
	for queue := []uint32{disk.RootInode}; len(queue) > 0; {
		ino := queue[0]
		queue = queue[1:]
		queue = append(queue, c.checkDirectory(ino)...)
	}
	for ino := uint32(1); ino <= c.s.geometry.Inodes; ino++ {
		if !disk.Bit(c.inodes, ino) || ino < c.s.geometry.FirstInode && ino != disk.RootInode || ino == c.super.OrphanInode() {
			continue
		}
		i, err := c.s.inode(ino)
		if err != nil {
			continue // the problem was reported before
		}
		got, want := c.links[ino], uint32(i.Links())
		isDir := fs.Mode(i.Mode()).Type() == fs.Dir
		switch {
		case got == 0 && want > 0:
			c.problem("inode %d: it is in no directory", ino)
		case got != want && !(isDir && want == 1 && got > disk.MaxLinks):
			c.problem("inode %d: it has %d links, and counts %d", ino, got, want)
		}
	}
}

// checkDirectory checks a directory, and returns its subdirectories.
func (c *checker) checkDirectory(ino uint32) (below []uint32) {
	i, err := c.s.inode(ino)
	if err != nil {
		return nil
	}
	n := &names{s: c.s, ino: ino, i: i}
	seen := map[string]bool{}
	visit := func(e disk.DirEntry) {
		name := string(e.Name)
		if name == "." || name == ".." {
			return
		}
		if seen[name] {
			c.problem("directory %d: the name %q is there twice", ino, name)
		}
		seen[name] = true
		if n.indexed() {
			if f, err := n.find(name); err != nil || f.entry.Inode != e.Inode {
				c.problem("directory %d: its index does not lead to %q", ino, name)
			}
		}
		if c.checkEntry(ino, e) {
			below = append(below, e.Inode)
		}
	}
	if i.Flags()&disk.FlagInlineData != 0 {
		var all []disk.DirEntry
		if all, err = n.inline(); err == nil {
			for _, e := range all {
				visit(e)
			}
		}
		c.links[ino]++
		c.links[c.parents[ino]]++
	} else {
		err = n.each(visit)
		c.checkDots(n)
	}
	if err != nil {
		c.problem("directory %d: it is damaged", ino)
	}
	return below
}

// checkDots checks the names "." and "..".
func (c *checker) checkDots(n *names) {
	for name, want := range map[string]uint32{".": n.ino, "..": c.parents[n.ino]} {
		f, err := n.find(name)
		if err != nil || f.entry.Inode != want {
			c.problem("directory %d: %q does not lead to inode %d", n.ino, name, want)
			continue
		}
		c.links[want]++
	}
}

// checkEntry checks the inode of a directory entry. It reports whether the inode is a directory
// that was not visited before.
func (c *checker) checkEntry(dir uint32, e disk.DirEntry) (isDir bool) {
	if !disk.Bit(c.inodes, e.Inode) {
		c.problem("directory %d: %q leads to inode %d, which is free", dir, e.Name, e.Inode)
		return false
	}
	i, err := c.s.inode(e.Inode)
	if err != nil {
		return false // the problem was reported before
	}
	c.links[e.Inode]++
	kind := disk.TypeOf(i.Mode())
	if c.s.geometry.FileType && e.Type != kind {
		c.problem("directory %d: %q has type %d, and its inode %d", dir, e.Name, e.Type, kind)
	}
	if kind != disk.TypeDirectory {
		return false
	}
	if _, again := c.parents[e.Inode]; again {
		c.problem("directory %d: %q leads to directory %d, which has another parent", dir, e.Name, e.Inode)
		return false
	}
	c.parents[e.Inode] = dir
	return true
}

// checkShared checks the reference counts of the blocks of attributes, which several files may
// share.
func (c *checker) checkShared() {
	numbers := make([]uint64, 0, len(c.shared))
	for n := range c.shared {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		c.claim(n, 1, "a block of attributes")
		b, err := c.s.image(n, disk.Structure{Kind: disk.KindAttributes})
		if err == nil && disk.SharedAttributes(b) != c.shared[n] {
			c.problem("block %d of attributes: %d files have it, and it counts %d", n, c.shared[n], disk.SharedAttributes(b))
		}
	}
}

// checkGroup compares a group's block bitmap with the blocks that are in use.
func (c *checker) checkGroup(group uint32) {
	if c.clusters {
		return
	}
	g := c.s.geometry
	b, err := c.s.blockBitmap(group)
	if err != nil {
		c.problem("the block bitmap of group %d: %v", group, err)
		return
	}
	d, err := c.s.descriptor(group)
	if err != nil {
		return
	}
	if pad := uint32(8 * len(b)); disk.NextClear(b, g.GroupBlocks(group), pad) < pad {
		c.problem("the block bitmap of group %d: its padding is not set", group)
	}
	free, lost, missing := uint32(0), 0, 0
	for bit := range g.GroupBlocks(group) {
		at := g.GroupStart(group) + uint64(bit)
		used := c.used[at/8]>>(at%8)&1 != 0
		switch marked := disk.Bit(b, bit); {
		case used && !marked:
			missing++
		case !used && marked:
			lost++
		}
		if !disk.Bit(b, bit) {
			free++
		}
		if used {
			c.findings.Blocks++
		}
	}
	if missing > 0 {
		c.problem("group %d: %d blocks are in use and marked as free", group, missing)
	}
	if lost > 0 {
		c.problem("group %d: %d blocks are marked as in use and belong to nothing", group, lost)
	}
	if free != d.FreeBlocks() {
		c.problem("group %d: %d blocks are free, its descriptor counts %d", group, free, d.FreeBlocks())
	}
}
