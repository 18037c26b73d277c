package fs

// Content is the content of a regular file in pages that read, write and mmap share, such as the page cache
// (mem/cache.File). The file system that owns the file keeps changes of one file apart.
type Content interface {
	// ReadAt reads len(p) bytes. All of them are before the end.
	ReadAt(p []byte, offset int64) (int, error)
	// WriteAt writes, and extends the content if necessary. Errors: ENOMEM, ENOSPC.
	WriteAt(p []byte, offset int64) (int, error)
	// Truncate sets the size. Added bytes are zeros. Errors: ENOMEM, ENOSPC.
	Truncate(size int64) error
	// Punch makes the pages whose indices are in [from, to) read as zeros, and frees their memory unless the content began with
	// other bytes there. Errors: ENOMEM, ENOSPC.
	Punch(from, to uint64) error
	// Allocated returns the number of pages of 4 KiB that hold content.
	Allocated() int64
	// Next returns the first offset at or after offset that is data, or that is in a hole; false at the end.
	Next(offset int64, data bool) (int64, bool)
	// Retire returns true if no process maps the content or is about to map it. From then on no process can map it,
	// and the owner moves the content elsewhere.
	Retire() bool
	// Storable reports whether a process may store to the content through a shared mapping, or is about to map it.
	Storable() bool
	// Drop frees the pages. The content is not used afterwards.
	Drop()
}

// Contents makes the content of a file that begins with base, which stays valid and unchanged. charge accounts for n
// more pages, or for fewer if n is negative; it returns ENOSPC if there is no room.
type Contents func(base []byte, charge func(n int64) error) Content

// Paged is a Handle whose file has a Content. It returns nil if the file has none.
type Paged interface {
	Handle
	Content() Content
}
