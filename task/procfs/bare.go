package procfs

import (
	"loam/abi/linux"
	"loam/fs"
)

// Bare implements the methods of Process for a process without memory, descriptors or arguments, like a thread of Linux's kernel.
type Bare struct{}

// Pinned implements Process.
func (b Bare) Pinned() Memory { return b }

// Exists implements Memory.
func (Bare) Exists() bool { return false }

// Sizes implements Memory.
func (Bare) Sizes(*Stat) {}

// Arguments implements Memory.
func (Bare) Arguments() []byte { return nil }

// Environment implements Memory.
func (Bare) Environment() []byte { return nil }

// Auxv implements Memory.
func (Bare) Auxv() []byte { return nil }

// Maps implements Memory.
func (Bare) Maps() []byte { return nil }

// Smaps implements Memory.
func (Bare) Smaps(uint64, int) ([]byte, uint64) { return nil, 0 }

// QueryRegion implements Memory.
func (Bare) QueryRegion(*linux.ProcmapQuery, bool) (string, []byte, error) {
	return "", nil, linux.ESRCH
}

// Rollup implements Memory.
func (Bare) Rollup() []byte { return nil }

// ReadMemory implements Memory.
func (Bare) ReadMemory([]byte, uint64) int { return 0 }

// WriteMemory implements Memory.
func (Bare) WriteMemory([]byte, uint64) int { return 0 }

// Present implements Memory.
func (Bare) Present(uint64) bool { return false }

// Descriptors implements Process.
func (Bare) Descriptors() []int { return nil }

// Descriptor implements Process.
func (Bare) Descriptor(int) (Descriptor, bool) { return Descriptor{}, false }

// AccessOf implements Process.
func (Bare) AccessOf(int) (int, bool) { return 0, false }

// Link implements Process.
func (Bare) Link(Link) (place fs.Place, path string, ok bool) { return place, "", false }

// Mounted implements Process.
func (Bare) Mounted() []fs.Mounted { return nil }

// Counts implements Process.
func (Bare) Counts() Counts { return Counts{} }
