package fs

// Memory is a range of addresses that holds a file's content, so that a program can map it. The layer
// that manages the address space allocates it and passes it to a file system (Reserve).
type Memory interface {
	// Address returns the start of the range.
	Address() uint64
	// Size returns the reserved size in bytes.
	Size() int64
	// Bytes returns the first n bytes and makes them readable and writable. n is at most Size. Bytes
	// that were never written are 0. Errors: ENOMEM.
	Bytes(n int64) ([]byte, error)
	// Clear zeroes the bytes in [from, to), which Bytes has returned before.
	Clear(from, to int64)
	// Free releases the range of addresses. Its bytes must not be used afterwards.
	Free()
}

// Reserve reserves memory for a file of size bytes, a multiple of the page size, and for its growth.
// Errors: ENOMEM.
type Reserve func(size int64) (Memory, error)

// Mappable is a Handle whose file can be mapped by mmap(2) with MAP_SHARED. While it is mapped, its
// content lies in Memory, so writes to the mapping change the file and vice versa.
type Mappable interface {
	Handle
	// Map moves the content into memory of at least size bytes, and counts a mapping. The content stays
	// there at least until Unmap has been called as often as Map. All mappings of a file share one
	// Memory. Errors: ENOMEM, also if the file is mapped and its memory is too small.
	Map(size int64, reserve Reserve) (Memory, error)
	// Unmap ends a mapping. The Handle is closed after Unmap.
	Unmap()
}
