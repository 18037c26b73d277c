package fs

// Bypass is a Handle that supports O_DIRECT (open(2)).
type Bypass interface {
	Handle
	// Direct returns a Handle of the same open file that moves content directly between p and the storage. It sees the
	// same content as the Handle and as mappings. The storage may require that offsets and lengths are multiples of
	// its sector: reads and writes that are not return EINVAL. Sync and Close of the returned Handle are not called.
	Direct() Handle
	// MemoryAlignment returns the alignment in bytes that a program's memory needs for Direct. Callers check it, since p
	// may be a copy of that memory. 1: any memory.
	MemoryAlignment() int
}

// transfer returns the handle for reads and writes.
func (f *File) transfer() Handle {
	if f.Flags()&Direct != 0 {
		if b, ok := f.handle.(Bypass); ok {
			return b.Direct()
		}
	}
	return f.handle
}

// MemoryAlignment returns the alignment in bytes that a program's memory needs for reads and writes; 1: any memory.
func (f *File) MemoryAlignment() int {
	if f.Flags()&Direct != 0 {
		if b, ok := f.handle.(Bypass); ok {
			return b.MemoryAlignment()
		}
	}
	return 1
}

// directAllowed reports whether a file of a type can be opened with O_DIRECT.
func directAllowed(kind Mode) bool { return kind != Dir && kind != CharDevice }
