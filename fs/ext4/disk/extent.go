package disk

// Extent is a run of adjacent blocks of a file.
type Extent struct {
	Logical   uint32 // the first block, as an index in the file
	Length    uint32 // length in blocks: 1 to MaxExtent
	Physical  uint64 // number of the first block on the device
	Unwritten bool   // the blocks are allocated, but read as zeros
}

// MaxExtent is the maximum length of an extent in blocks; MaxUnwritten is the maximum for an
// unwritten one.
const (
	MaxExtent    = 1 << 15
	MaxUnwritten = MaxExtent - 1
)

// MaxLogical is the maximum number of blocks of a file.
const MaxLogical = 1<<32 - 1

// End returns the index of the first block of the file after the extent.
func (e Extent) End() uint64 { return uint64(e.Logical) + uint64(e.Length) }

// Limit returns the maximum length of an extent of this kind.
func (e Extent) Limit() uint32 {
	if e.Unwritten {
		return MaxUnwritten
	}
	return MaxExtent
}

// Cut returns the part of an extent between two blocks of the file, from inclusive, to exclusive.
func (e Extent) Cut(from, to uint64) Extent {
	e.Physical += from - uint64(e.Logical)
	e.Logical, e.Length = uint32(from), uint32(to-from)
	return e
}

// Follows reports whether e and the extent before it can be combined.
func (e Extent) Follows(before Extent) bool {
	return before.End() == uint64(e.Logical) && before.Physical+uint64(before.Length) == e.Physical &&
		before.Unwritten == e.Unwritten && before.Length+e.Length <= e.Limit()
}

// Extents is a view of a node of an extent tree: the root in an inode, or a block ("Extent Tree").
// A leaf, whose depth is 0, has extents in rising order. Each entry of another node has the block
// of a node one level below and the first block of the file in that node.
type Extents []byte

const (
	extentMagic = 0xf30a
	extentHead  = 12
	extentEntry = 12

	// MaxDepth is the maximum depth of the root of an extent tree.
	MaxDepth = 5
)

// RootEntries is the maximum number of entries of a root in an inode.
const RootEntries = (BlockArea - extentHead) / extentEntry

// Fields of the header of a node.
func (x Extents) Count() int     { return int(le.Uint16(x[2:])) }
func (x Extents) Max() int       { return int(le.Uint16(x[4:])) }
func (x Extents) Depth() int     { return int(le.Uint16(x[6:])) }
func (x Extents) setCount(n int) { le.PutUint16(x[2:], uint16(n)) }

// InitExtents writes an empty node that fills b: an inode's area, or a block without the room for a
// checksum at its end.
func InitExtents(b []byte, depth int) Extents {
	clear(b)
	room := len(b) - extentHead
	if len(b) > BlockArea {
		room -= 4
	}
	le.PutUint16(b, extentMagic)
	le.PutUint16(b[4:], uint16(room/extentEntry))
	le.PutUint16(b[6:], uint16(depth))
	return b
}

// extentTail returns the offset of the checksum in a block. In a damaged block it may be beyond the
// end.
func extentTail(b []byte) int { return extentHead + extentEntry*int(le.Uint16(b[4:])) }

func (x Extents) entry(i int) []byte { return x[extentHead+extentEntry*i:][:extentEntry] }

// Key returns the first block of the file that entry i covers, in a node of any depth.
func (x Extents) Key(i int) uint32 { return le.Uint32(x.entry(i)) }

// SetKey sets the key of entry i.
func (x Extents) SetKey(i int, logical uint32) { le.PutUint32(x.entry(i), logical) }

// Extent returns entry i of a leaf.
func (x Extents) Extent(i int) Extent {
	b := x.entry(i)
	e := Extent{
		Logical: le.Uint32(b), Length: uint32(le.Uint16(b[4:])),
		Physical: uint64(le.Uint32(b[8:])) | uint64(le.Uint16(b[6:]))<<32,
	}
	if e.Length > MaxExtent {
		e.Length -= MaxExtent
		e.Unwritten = true
	}
	return e
}

// SetExtent writes entry i of a leaf.
func (x Extents) SetExtent(i int, e Extent) {
	b := x.entry(i)
	length := e.Length
	if e.Unwritten {
		length += MaxExtent
	}
	le.PutUint32(b, e.Logical)
	le.PutUint16(b[4:], uint16(length))
	le.PutUint16(b[6:], uint16(e.Physical>>32))
	le.PutUint32(b[8:], uint32(e.Physical))
}

// Child returns the block of the node below entry i.
func (x Extents) Child(i int) uint64 {
	b := x.entry(i)
	return uint64(le.Uint32(b[4:])) | uint64(le.Uint16(b[8:]))<<32
}

// SetChild writes entry i of a node that is not a leaf.
func (x Extents) SetChild(i int, logical uint32, block uint64) {
	b := x.entry(i)
	le.PutUint32(b, logical)
	le.PutUint32(b[4:], uint32(block))
	le.PutUint16(b[8:], uint16(block>>32))
	le.PutUint16(b[10:], 0)
}

// Open inserts an unset entry before entry i. The node must not be full.
func (x Extents) Open(i int) {
	n := x.Count()
	x.setCount(n + 1)
	copy(x[extentHead+extentEntry*(i+1):extentHead+extentEntry*(n+1)], x[extentHead+extentEntry*i:])
}

// Delete removes the n entries that begin at entry i.
func (x Extents) Delete(i, n int) {
	end := extentHead + extentEntry*x.Count()
	copy(x[extentHead+extentEntry*i:end], x[extentHead+extentEntry*(i+n):end])
	clear(x[end-extentEntry*n : end])
	x.setCount(x.Count() - n)
}

// MoveTail moves entry i and all later ones to the end of another node of the same depth.
func (x Extents) MoveTail(i int, to Extents) {
	n := x.Count() - i
	copy(to[extentHead+extentEntry*to.Count():], x[extentHead+extentEntry*i:extentHead+extentEntry*(i+n)])
	to.setCount(to.Count() + n)
	x.Delete(i, n)
}

// Search returns the index of the last entry whose key is at most logical, or -1 if there is none.
func (x Extents) Search(logical uint32) int {
	lo, hi := 0, x.Count()
	for lo < hi {
		if mid := (lo + hi) / 2; x.Key(mid) <= logical {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// CheckExtents checks a node: its depth (any up to MaxDepth if depth is -1), the order of its
// entries, and that all blocks exist on the device. Errors: ErrCorrupt.
func (g *Geometry) CheckExtents(x Extents, depth int) error {
	if le.Uint16(x) != extentMagic || x.Count() > x.Max() || extentTail(x) > len(x) ||
		depth < 0 && x.Depth() > MaxDepth || depth >= 0 && x.Depth() != depth || depth >= 0 && x.Count() == 0 {
		return ErrCorrupt
	}
	end := uint64(0)
	for i := range x.Count() {
		if x.Depth() > 0 {
			if uint64(x.Key(i)) < end || !g.Holds(x.Child(i), 1) {
				return ErrCorrupt
			}
			end = uint64(x.Key(i)) + 1
			continue
		}
		e := x.Extent(i)
		if e.Length == 0 || uint64(e.Logical) < end || e.End() > 1<<32 || !g.Holds(e.Physical, uint64(e.Length)) {
			return ErrCorrupt
		}
		end = e.End()
	}
	return nil
}
