package memfs

import (
	"loam/abi/linux"
	"loam/fs"
)

const (
	pageSize  = 4096
	leafPages = 512
	leafSize  = pageSize * leafPages
)

type page [pageSize]byte

// file is a regular file. Its content and handles are guarded by mu.
type file struct {
	node
	base     []byte     // content below the pages; read-only, and owned by the caller of SetContent
	leaves   [][]*page  // a leaf ends with its last allocated page; nil pages are holes or show base
	held     int64      // number of allocated pages
	mapped   mapped     // replaces base and leaves once the file has been mapped
	paged    fs.Content // replaces base, leaves and mapped if there is a page cache: see Source
	handles  int        // number of open handles
	seals    fs.Seals
	nameless bool // the file has no name: its content is freed with the last handle
	nameable bool // the file has no name, but may get a first name
	freed    bool // retire has freed everything
}

// SetContent sets the content of a file in memory that has not been written. The content may lie elsewhere, such as in a
// mapped image. Reads use it in place, and a write copies the page. The caller must keep it valid and unchanged. It returns
// EINVAL for other files.
func SetContent(n fs.Node, content []byte) error {
	f, ok := n.(*file)
	if !ok {
		return linux.EINVAL
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = content
	f.attr.Size = int64(len(content))
	return nil
}

// Open implements fs.Node. Errors: ENOENT if the file has gone since the caller found it.
func (f *file) Open(flags fs.Flags) (fs.Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freed {
		return nil, linux.ENOENT
	}
	f.handles++
	if flags&fs.PathOnly == 0 {
		f.enterCache()
	}
	return handle{f}, nil
}

// InUse implements fs.Lasting.
func (f *file) InUse() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.handles > 0
}

// unlinked implements inode.
func (f *file) unlinked() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nameless = true
	f.retire()
}

// takesName implements inode. It reports whether a nameless file may get its first name.
func (f *file) takesName() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.nameable || f.retired() {
		return false
	}
	f.nameable, f.nameless = false, false
	return true
}

// retired reports whether the file can no longer be reached.
func (f *file) retired() bool { return f.nameless && f.handles == 0 }

// retire frees everything if the file can no longer be reached.
func (f *file) retire() {
	if f.retired() {
		f.release()
		f.dropXattrs()
		f.xattrs.values = nil
		f.system.files.Add(-1)
		f.freed = true
	}
}

// Attr implements fs.Node.
func (f *file) Attr() fs.Attr {
	a := f.node.Attr()
	f.mu.RLock()
	a.Blocks = f.held*(pageSize/512) + int64(len(f.base)+len(f.mapped.bytes)+511)/512
	if f.paged != nil {
		a.Blocks = f.paged.Allocated() * (pageSize / 512)
	}
	f.mu.RUnlock()
	return a
}

// Change implements fs.Node.
func (f *file) Change(c fs.Change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Fields&fs.SetSize != 0 {
		switch {
		case c.Size < 0:
			return linux.EINVAL
		case c.Size > MaxSize:
			return linux.EFBIG
		}
		if err := f.resize(c.Size); err != nil {
			return err
		}
		f.attr.Modify = f.system.now()
	}
	return f.change(c)
}

// resize changes the size. Errors: ENOSPC, EPERM.
func (f *file) resize(size int64) error {
	if err := f.mayResize(size); err != nil {
		return err
	}
	if f.paged != nil {
		if err := f.paged.Truncate(size); err != nil {
			return err
		}
	} else if f.mapped.memory == nil {
		f.cut(size)
	} else if err := f.extend(size); err != nil {
		return err
	} else if size < f.attr.Size {
		f.clearFrom(size)
	}
	f.attr.Size = size
	return nil
}

// cut frees the content beyond size, so that it reads as zeros if the file grows again.
func (f *file) cut(size int64) {
	if size >= f.attr.Size {
		return
	}
	f.base = f.base[:min(int64(len(f.base)), size)]
	if p := f.page(size / pageSize); p != nil {
		clear(p[size%pageSize:])
	}
	first := (size + pageSize - 1) / pageSize // number of the first page to free
	whole := (first + leafPages - 1) / leafPages
	before := f.held
	for i := first / leafPages; i < int64(len(f.leaves)); i++ {
		from := max(first-i*leafPages, 0)
		leaf := f.leaves[i]
		for j := from; j < int64(len(leaf)); j++ {
			if leaf[j] != nil {
				leaf[j] = nil
				f.held--
			}
		}
		if from < int64(len(leaf)) {
			f.leaves[i] = leaf[:from]
		}
	}
	if whole < int64(len(f.leaves)) {
		clear(f.leaves[whole:])
		f.leaves = f.leaves[:whole]
	}
	f.system.takePages(f.held - before)
}

// page returns the page with an index, or nil for a hole.
func (f *file) page(i int64) *page {
	if i/leafPages >= int64(len(f.leaves)) {
		return nil
	}
	leaf := f.leaves[i/leafPages]
	if i %= leafPages; i < int64(len(leaf)) {
		return leaf[i]
	}
	return nil
}

// makePage returns the page with an index, and allocates it if necessary. Errors: ENOSPC.
func (f *file) makePage(i int64) (*page, error) {
	if p := f.page(i); p != nil {
		return p, nil
	}
	if err := f.system.takePages(1); err != nil {
		return nil, err
	}
	p := new(page)
	if below := i * pageSize; below < int64(len(f.base)) {
		copy(p[:], f.base[below:])
	}
	f.put(i, p)
	return p, nil
}

// handle is an open file.
type handle struct{ *file }

// ReadAt implements fs.Handle.
func (h handle) ReadAt(p []byte, offset int64) (int, error) {
	f := h.file
	f.mu.RLock()
	defer f.mu.RUnlock()
	p = p[:max(0, min(int64(len(p)), f.attr.Size-offset))]
	if f.paged != nil && len(p) > 0 {
		return f.paged.ReadAt(p, offset)
	}
	if f.mapped.memory != nil && len(p) > 0 {
		return copy(p, f.mapped.bytes[offset:]), nil
	}
	n := 0
	for n < len(p) {
		at := offset + int64(n)
		part := p[n:min(len(p), n+int(pageSize-at%pageSize))]
		switch from := f.page(at / pageSize); {
		case from != nil:
			copy(part, from[at%pageSize:])
		case at < int64(len(f.base)):
			clear(part[copy(part, f.base[at:]):])
		default:
			clear(part)
		}
		n += len(part)
	}
	return n, nil
}

// WriteAt implements fs.Handle.
func (h handle) WriteAt(p []byte, offset int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.file.write(p, offset)
}

// Append implements fs.Handle.
func (h handle) Append(p []byte) (int, int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.file.write(p, h.file.attr.Size)
	return n, h.file.attr.Size, err
}

// write writes p. The caller holds mu. Like Linux, it returns an error only if nothing was written;
// otherwise it writes what fits.
func (f *file) write(p []byte, offset int64) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case f.retired(): // another goroutine has closed the handle in the meantime
		return 0, linux.EBADF
	case offset >= MaxSize:
		return 0, linux.EFBIG
	}
	n, err := f.mayWrite(len(p), offset)
	if err != nil {
		return 0, err
	}
	n, err = f.fill(p[:min(int64(n), MaxSize-offset)], offset)
	if err != nil {
		return 0, err
	}
	f.attr.Size = max(f.attr.Size, offset+int64(n))
	f.attr.Modify = f.system.now()
	f.attr.Status = f.attr.Modify
	return n, nil
}

// fill copies p into the content.
func (f *file) fill(p []byte, offset int64) (int, error) {
	if f.paged != nil {
		n, err := f.paged.WriteAt(p, offset)
		if n > 0 {
			err = nil
		}
		return n, err
	}
	if f.mapped.memory != nil {
		if err := f.extend(offset + int64(len(p))); err != nil {
			return 0, err
		}
		return copy(f.mapped.bytes[offset:], p), nil
	}
	n := 0
	for n < len(p) {
		at := offset + int64(n)
		to, err := f.makePage(at / pageSize)
		if err != nil {
			if n == 0 {
				return 0, err
			}
			break
		}
		n += copy(to[at%pageSize:], p[n:])
	}
	return n, nil
}

// Immediate implements fs.Immediate.
func (h handle) Immediate() {}

// Sync implements fs.Handle.
func (h handle) Sync() error { return nil }

// Close implements fs.Handle.
func (h handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handles--
	h.retire()
	return nil
}
