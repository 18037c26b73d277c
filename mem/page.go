package mem

import "sync/atomic"

// Sizes of pages and blocks, in bytes. A block is a big page of x86-64.
const (
	PageShift  = 12
	PageSize   = 1 << PageShift
	BlockShift = 21
	BlockSize  = 1 << BlockShift
	BlockPages = BlockSize / PageSize
)

// Page is the number of a physical page: its physical address divided by PageSize. The zero Page means no page. With 32
// bits, up to 16 TiB can be addressed.
type Page uint32

// Memory allocates physical pages. Its methods are safe for concurrent use. They may be called with any lock of this
// package held.
type Memory interface {
	// Allocate returns a page with undefined content and a reference count of one,
	// or 0 if no page is free.
	Allocate() Page
	// AllocateBlock returns the first page of a block: BlockPages contiguous pages, aligned to BlockSize, each with a
	// reference count of one. It returns 0 if no block is free.
	AllocateBlock() Page
	// Free makes a page available again. Its reference count must be zero.
	Free(Page)
	// FreeBlock makes the pages of a block available again, which AllocateBlock returned as first. Their reference counts
	// must be zero.
	FreeBlock(first Page)
	// Bytes returns the content of a page: PageSize bytes.
	Bytes(Page) []byte
	// References returns the reference count of a page.
	References(Page) *atomic.Int32
	// Zero returns the page that contains zeros. It is never written or freed, and references to it are not counted.
	Zero() Page
}

// Retain adds a reference to a page.
func Retain(m Memory, p Page) {
	if p != m.Zero() {
		m.References(p).Add(1)
	}
}

// Release drops a reference to a page, and frees the page if it was the last one.
func Release(m Memory, p Page) {
	if p == m.Zero() {
		return
	}
	switch n := m.References(p).Add(-1); {
	case n == 0:
		m.Free(p)
	case n < 0:
		panic("mem: page released too often")
	}
}

// Prot is a set of permissions, with the values of PROT_READ and the others.
type Prot uint8

// Permissions. On x86-64 a writable or executable page is readable too.
const (
	Read  Prot = 1
	Write Prot = 2
	Exec  Prot = 4
)

// Access is the kind of a memory access that caused a fault.
type Access uint8

// Values of Access.
const (
	Load Access = iota
	Store
	Fetch
)

// allowed reports whether the permissions allow an access.
func (p Prot) allowed(a Access) bool {
	switch a {
	case Store:
		return p&Write != 0
	case Fetch:
		return p&Exec != 0
	}
	return p != 0
}

// String returns permissions as in /proc/PID/maps: "rwx" with dashes.
func (p Prot) String() string { return string(p.append(nil)) }

// append appends the text of String.
func (p Prot) append(b []byte) []byte {
	for i, c := range []byte("rwx") {
		if p&(1<<i) == 0 {
			c = '-'
		}
		b = append(b, c)
	}
	return b
}

// down rounds an address down to a page boundary, and up rounds it up.
func down(a uint64) uint64 { return a &^ (PageSize - 1) }
func up(a uint64) uint64   { return down(a + PageSize - 1) }

func aligned(a uint64) bool { return a%PageSize == 0 }
