package disk

import (
	"cmp"
	"slices"
)

// hashed is a name of a leaf that is being split.
type hashed struct {
	name string
	hash uint32
	ino  uint32
	kind uint8
	size int
}

// SplitLeaf moves the half of a leaf's names that has the larger hashes to a new leaf. It returns the bound between them for
// the index: the first hash of the new leaf, with the lowest bit set if both leaves have names with this hash. ok is false, and
// nothing changes, if the leaf has fewer than two names.
func (g *Geometry) SplitLeaf(b, upper []byte, version uint8) (bound uint32, ok bool) {
	all, total := []hashed(nil), 0
	for e, ok := NextEntry(b, 0); ok; e, ok = NextEntry(b, e.Offset+e.Length) {
		h, _ := g.Hash(version, string(e.Name))
		all = append(all, hashed{string(e.Name), h, e.Inode, e.Type, EntrySize(len(e.Name))})
		total += EntrySize(len(e.Name))
	}
	if len(all) < 2 {
		return 0, false
	}
	slices.SortStableFunc(all, func(a, b hashed) int { return cmp.Compare(a.hash, b.hash) })
	middle, size := 0, 0
	for middle < len(all)-1 && (middle == 0 || size+all[middle].size <= total/2) {
		size += all[middle].size
		middle++
	}
	g.InitDirectory(b)
	g.InitDirectory(upper)
	for i, e := range all {
		to := b
		if i >= middle {
			to = upper
		}
		g.AddEntry(to, e.name, e.ino, e.kind)
	}
	bound = all[middle].hash
	if all[middle-1].hash == bound {
		bound |= 1
	}
	return bound, true
}
