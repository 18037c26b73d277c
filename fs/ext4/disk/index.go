package disk

// Index is a view of an index block of a directory ("Hash Tree Directories"). It is in the
// directory's first block, after "." and "..", or in a block that old implementations read as one
// empty entry. Its entries are pairs of a hash and a block of the directory, in rising order. The
// first entry has no hash: it covers all smaller hashes.
type Index struct {
	b  []byte
	at int // offset of the first entry; its hash field holds the limit and the count
}

const (
	rootAt = 32
	nodeAt = 8

	infoAt = 24 // in the root: zero, hash version, length of this structure, levels, flags
)

// IndexRoot returns the index root in a directory's first block.
func IndexRoot(b []byte) Index { return Index{b, rootAt} }

// IndexNode returns the index in another block.
func IndexNode(b []byte) Index { return Index{b, nodeAt} }

// Fields. Levels is the number of index levels between the root and the leaves.
func (x Index) Limit() int         { return int(le.Uint16(x.b[x.at:])) }
func (x Index) Count() int         { return int(le.Uint16(x.b[x.at+2:])) }
func (x Index) HashVersion() uint8 { return x.b[infoAt+4] }
func (x Index) Levels() int        { return int(x.b[infoAt+6]) }
func (x Index) SetLevels(n int)    { x.b[infoAt+6] = uint8(n) }
func (x Index) Hash(i int) uint32 {
	if i == 0 {
		return 0
	}
	return le.Uint32(x.b[x.at+8*i:])
}

// Block returns the block of the directory to which entry i refers.
func (x Index) Block(i int) uint32 { return le.Uint32(x.b[x.at+8*i+4:]) & 0x0fffffff }

func (x Index) setCount(n int) { le.PutUint16(x.b[x.at+2:], uint16(n)) }
func (x Index) tail() int      { return x.at + 8*x.Limit() }

// room returns the maximum number of entries in an index block.
func (g *Geometry) room(at int) int {
	n := (g.BlockSize - at) / 8
	if g.Sums.metadata {
		n--
	}
	return n
}

// InitRoot makes a directory's first block an index root with one leaf. The entries "." and ".."
// stay.
func (g *Geometry) InitRoot(b []byte, hashVersion uint8, leaf uint32) Index {
	setEntryLength(b, 12, len(b)-12)
	clear(b[infoAt:])
	b[infoAt+4], b[infoAt+5] = hashVersion, 8
	x := Index{b, rootAt}
	le.PutUint16(b[rootAt:], uint16(g.room(rootAt)))
	x.setCount(1)
	le.PutUint32(b[rootAt+4:], leaf)
	return x
}

// InitNode makes a block an index node without entries.
func (g *Geometry) InitNode(b []byte) Index {
	clear(b)
	setEntryLength(b, 0, len(b))
	le.PutUint16(b[nodeAt:], uint16(g.room(nodeAt)))
	return Index{b, nodeAt}
}

// Full reports whether there is no room for another entry.
func (x Index) Full() bool { return x.Count() >= x.Limit() }

// Search returns the index of the entry that covers a hash.
func (x Index) Search(hash uint32) int {
	lo, hi := 1, x.Count()
	for lo < hi {
		if mid := (lo + hi) / 2; x.Hash(mid) <= hash {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// Insert inserts an entry after entry i.
func (x Index) Insert(i int, hash, block uint32) {
	n := x.Count()
	copy(x.b[x.at+8*(i+2):x.at+8*(n+1)], x.b[x.at+8*(i+1):])
	le.PutUint32(x.b[x.at+8*(i+1):], hash)
	le.PutUint32(x.b[x.at+8*(i+1)+4:], block)
	x.setCount(n + 1)
}

// MoveTail moves entry i and all later ones to an empty node, and returns the hash of the first
// one.
func (x Index) MoveTail(i int, to Index) (hash uint32) {
	n := x.Count()
	hash = x.Hash(i)
	limit := to.Limit()
	copy(to.b[to.at:], x.b[x.at+8*i:x.at+8*n])
	le.PutUint16(to.b[to.at:], uint16(limit)) // the limit is stored in place of the first hash
	to.setCount(n - i)
	x.setCount(max(i, 1))
	return hash
}

// Relink makes entry i refer to another block.
func (x Index) Relink(i int, block uint32) { le.PutUint32(x.b[x.at+8*i+4:], block) }

// IndexLevels returns the maximum number of levels of an index below its root.
func (g *Geometry) IndexLevels() int {
	if g.LargeDir {
		return 2
	}
	return 1
}

// CheckIndex checks a block of an index; a root has at most maxLevels levels. Errors: ErrCorrupt.
func (g *Geometry) CheckIndex(x Index, maxLevels int) error {
	if x.at == rootAt {
		if g.CheckDirectory(x.b) != nil || entryLength(x.b, 0) != 12 || x.b[infoAt+5] != 8 || x.Levels() > maxLevels || le.Uint32(x.b[infoAt:]) != 0 {
			return ErrCorrupt
		}
	} else if le.Uint32(x.b) != 0 || entryLength(x.b, 0) != len(x.b) {
		return ErrCorrupt
	}
	if x.Limit() != g.room(x.at) || x.Count() == 0 || x.Count() > x.Limit() {
		return ErrCorrupt
	}
	for i := 2; i < x.Count(); i++ {
		if x.Hash(i) < x.Hash(i-1) {
			return ErrCorrupt
		}
	}
	return nil
}
