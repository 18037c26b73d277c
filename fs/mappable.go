package fs

// Memory is address space that a file's content is put into, so that a program can map
// it. It is made and given to a file system by whoever knows the machine.
type Memory interface {
	// Address is where it begins.
	Address() uint64
	// Size is how many bytes were set aside.
	Size() int64
	// Bytes are the first n, at most Size, which may be read and written from then on.
	// What nobody has written to is zeros. Errors: ENOMEM.
	Bytes(n int64) ([]byte, error)
	// Clear makes zeros of the bytes from one offset to another, which Bytes has given.
	Clear(from, to int64)
	// Free ends it: nobody uses its bytes any more.
	Free()
}

// Reserve sets memory aside for a file of so many bytes, whole pages, and for what it may
// grow by.
// Errors: ENOMEM.
type Reserve func(size int64) (Memory, error)

// Mappable is a Handle whose file can be mapped by mmap(2) so that what is written to the
// mapping is in the file, and the other way round: its content then lies in Memory.
type Mappable interface {
	Handle
	// Map puts the content into memory of at least size bytes, where it stays as long as
	// there are more calls of Map than of Unmap. All mappings of a file are in one
	// Memory. Errors: ENOMEM, also if there are mappings and their memory is too small.
	Map(size int64, reserve Reserve) (Memory, error)
	// Unmap ends a mapping. The Handle is closed after it.
	Unmap()
}
