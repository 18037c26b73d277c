package thread

import "unsafe"

// addressOf returns the address of records, which the caller keeps alive.
func addressOf(c *[ChunkThreads]Thread) uintptr { return uintptr(unsafe.Pointer(c)) }
