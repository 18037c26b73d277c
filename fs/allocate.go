package fs

// AllocateMode is the mode of fallocate(2), with Linux's values.
type AllocateMode uint32

// Modes of fallocate(2). 0 and KeepSize alone allocate space.
const (
	KeepSize      AllocateMode = 0x01 // does not change the size of the file
	PunchHole     AllocateMode = 0x02 // deallocates the space of a range; requires KeepSize
	CollapseRange AllocateMode = 0x08 // removes a range from the file
	ZeroRange     AllocateMode = 0x10 // zeroes a range and keeps its space allocated
	InsertRange   AllocateMode = 0x20 // inserts a hole into the file
	UnshareRange  AllocateMode = 0x40 // makes space that is shared with other files private to the file
)

// Allocator is a Handle that can allocate and deallocate space.
type Allocator interface {
	Handle
	// Allocate implements fallocate(2); length is at least 1. Errors: ENOSPC, EFBIG, EINVAL (a range
	// that the mode does not allow), EOPNOTSUPP (an unknown mode).
	Allocate(mode AllocateMode, offset, length int64) error
}
