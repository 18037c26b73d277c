package thread

import "unsafe"

// Records of threads beyond the first are in memory that the owner adds, a page at a time.

// ChunkThreads is the number of records in a piece of memory.
const ChunkThreads = 16

// ChunkSize is the size of such a piece, in bytes.
const ChunkSize = 4096

// The records of a piece fit into it.
const _ = uint(ChunkSize - unsafe.Sizeof([ChunkThreads]Thread{}))

// chunkAt returns the records in a piece of memory. Safety: Extend received the address of ChunkSize bytes that stay
// in use, and records hold no pointers. The detour by &addr is for vet.
func chunkAt(addr uintptr) *[ChunkThreads]Thread {
	return *(**[ChunkThreads]Thread)(unsafe.Pointer(&addr))
}
