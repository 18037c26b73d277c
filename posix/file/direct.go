package file

import "loam/fs"

// InPlace is a file with O_DIRECT whose device can access memory of a program itself: see fs.File.Transfer.
type InPlace interface {
	MemoryAlignment() int
	AtEnd(offset int64) bool
	MayTransfer(n int, offset int64, write bool) bool
	Transfer(p *fs.Pieces, offset int64, write bool) (int, error)
}

// InPlace returns the file if it has O_DIRECT and memory at an address is aligned for it; nil otherwise, and if o is nil.
func (o *Description) InPlace(address uint64) InPlace {
	if o == nil {
		return nil
	}
	f, ok := o.File.(InPlace)
	if !ok {
		return nil
	}
	if align := uint64(f.MemoryAlignment()); align == 1 || address&(align-1) != 0 {
		return nil
	}
	return f
}

// Misaligned reports whether the file has O_DIRECT and needs memory with another alignment than an address has, for a read or
// write at an offset or at fs.Current. As on Linux, a read at the end of a regular file needs no alignment.
func (o *Description) Misaligned(address uint64, offset int64, write bool) bool {
	if o == nil {
		return false
	}
	f, ok := o.File.(InPlace)
	return ok && address&uint64(f.MemoryAlignment()-1) != 0 && (write || !f.AtEnd(offset))
}
