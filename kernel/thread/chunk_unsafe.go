package thread

import "unsafe"

// The owner of the Table, package kernel, adds memory for the records of threads, one chunk at a time. Only the first records are part of the Table.

// ChunkThreads is the number of records in a chunk.
const ChunkThreads = 16

// ChunkSize is the size of a chunk in bytes.
const ChunkSize = 4096

// Compile-time check: ChunkThreads records fit into ChunkSize bytes.
const _ = uint(ChunkSize - unsafe.Sizeof([ChunkThreads]Thread{}))

// chunkAt returns the records in a chunk. Safety: Extend received the address of ChunkSize bytes that stay in use, and
// records hold no pointers. The detour by &addr is for vet.
func chunkAt(addr uintptr) *[ChunkThreads]Thread {
	return *(**[ChunkThreads]Thread)(unsafe.Pointer(&addr))
}
