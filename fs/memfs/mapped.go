package memfs

import (
	"loam/abi/linux"
	"loam/fs"
)

// mapped is the content of a file that a program has mapped: one range of memory instead of pages. The
// content stays there until the file is deleted. The struct is guarded by the file's mu, but programs
// write to the memory without any lock. The memory does not count towards the limit of the file system,
// because most mapped files are long and nearly empty.
type mapped struct {
	memory  fs.Memory  // memory that holds the content while the file is mapped; nil: the content is in the field pages
	bytes   []byte     // the part of memory in use, in whole pages
	reserve fs.Reserve // function that allocates memory, from the last Map
	count   int        // number of mappings
}

// Map implements fs.Mappable. The content leaves the page cache. Errors: also ENODEV for a file that a process maps.
func (h handle) Map(size int64, reserve fs.Reserve) (fs.Memory, error) {
	f := h.file
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.paged != nil && !f.paged.Retire():
		return nil, linux.ENODEV
	case size > MaxSize:
		return nil, linux.ENOMEM
	}
	f.mapped.reserve = reserve
	if err := f.settle(max(size, f.attr.Size)); err != nil {
		return nil, err
	}
	f.mapped.count++
	return f.mapped.memory, nil
}

// Unmap implements fs.Mappable.
func (h handle) Unmap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.file.mapped.count--
}

// settle moves the content to memory of at least size bytes. Errors: ENOMEM.
func (f *file) settle(size int64) error {
	m := &f.mapped
	if m.memory != nil && m.memory.Size() >= size {
		return nil
	}
	if m.count > 0 {
		return linux.ENOMEM
	}
	memory, err := m.reserve(roundUp(size))
	if err != nil {
		return err
	}
	bytes, err := memory.Bytes(roundUp(f.attr.Size))
	if err != nil {
		memory.Free()
		return err
	}
	if err := f.copyTo(bytes); err != nil {
		memory.Free()
		return err
	}
	f.release()
	m.memory, m.bytes = memory, bytes
	return nil
}

// copyTo copies the content to bytes, which are zero.
func (f *file) copyTo(bytes []byte) error {
	if f.paged != nil {
		_, err := f.paged.ReadAt(bytes[:f.attr.Size], 0)
		return err
	}
	copy(bytes, f.mapped.bytes)
	copy(bytes, f.base)
	for i, leaf := range f.leaves {
		for j, p := range leaf {
			if p != nil {
				copy(bytes[int64(i*leafPages+j)*pageSize:], p[:])
			}
		}
	}
	return nil
}

// release frees the content.
func (f *file) release() {
	f.system.takePages(-f.held)
	f.base, f.leaves, f.held = nil, nil, 0
	if f.mapped.memory != nil {
		f.mapped.memory.Free()
		f.mapped.memory, f.mapped.bytes = nil, nil
	}
	if f.paged != nil {
		f.paged.Drop()
		f.paged = nil
	}
}

// extend makes the first size bytes of memory usable. Errors: ENOSPC.
func (f *file) extend(size int64) error {
	m := &f.mapped
	if size <= int64(len(m.bytes)) {
		return nil
	}
	if f.settle(size) != nil {
		return linux.ENOSPC
	}
	bytes, err := m.memory.Bytes(roundUp(size))
	if err != nil {
		return linux.ENOSPC
	}
	m.bytes = bytes
	return nil
}

// clearFrom zeroes everything from size on.
func (f *file) clearFrom(size int64) {
	if end := int64(len(f.mapped.bytes)); size < end {
		f.mapped.memory.Clear(size, end)
	}
}

// roundUp rounds a size up to whole pages.
func roundUp(size int64) int64 { return (size + pageSize - 1) &^ (pageSize - 1) }
