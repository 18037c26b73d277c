package memfs

import (
	"syscall"

	"loam/fs"
)

const (
	pageSize  = 4096
	leafPages = 512
	leafSize  = pageSize * leafPages
)

type page [pageSize]byte

// file is a regular file. Its content is guarded by mu; so is handles.
type file struct {
	node
	base     []byte    // what lies below the pages; never written, and not ours: see SetContent
	leaves   [][]*page // a leaf is as long as its last page needs; nil pages are holes, or the base
	held     int64     // pages that are not nil
	mapped   mapped    // in the place of base and leaves, if its memory is there
	handles  int
	seals    fs.Seals
	nameless bool // there is no name, or none any more: the content goes with the last handle
	nameable bool // nameless, until it gets a first name
}

// SetContent gives a file, which this file system made and nobody has written to,
// content that lies somewhere else, such as in a mapped image. It is read from
// there and copied a page at a time when the program writes; it must stay, and
// never change.
func (m *FileSystem) SetContent(n fs.Node, content []byte) error {
	f, ok := n.(*file)
	if !ok || f.system != m {
		return syscall.EINVAL
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = content
	f.attr.Size = int64(len(content))
	return nil
}

// Open implements fs.Node.
func (f *file) Open(fs.Flags) (fs.Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handles++
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

// takesName reports whether a file without a name gets its first one. Names are locked.
func (f *file) takesName() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.nameable || f.retired() {
		return false
	}
	f.nameable, f.nameless = false, false
	return true
}

// retired reports whether nobody can reach the file any more.
func (f *file) retired() bool { return f.nameless && f.handles == 0 }

// retire gives everything back then.
func (f *file) retire() {
	if f.retired() {
		f.release()
		f.dropXattrs()
		f.system.files.Add(-1)
	}
}

// Attr implements fs.Node.
func (f *file) Attr() fs.Attr {
	a := f.node.Attr()
	f.mu.RLock()
	a.Blocks = f.held*(pageSize/512) + int64(len(f.base)+len(f.mapped.bytes)+511)/512
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
			return syscall.EINVAL
		case c.Size > MaxSize:
			return syscall.EFBIG
		}
		if err := f.resize(c.Size); err != nil {
			return err
		}
		f.attr.Modify = f.system.now()
	}
	f.change(c)
	return nil
}

// resize makes the file longer or shorter. Errors: ENOSPC, EPERM.
func (f *file) resize(size int64) error {
	if err := f.mayResize(size); err != nil {
		return err
	}
	if f.mapped.memory == nil {
		f.cut(size)
	} else if err := f.extend(size); err != nil {
		return err
	} else if size < f.attr.Size {
		f.clearFrom(size)
	}
	f.attr.Size = size
	return nil
}

// cut drops what lies beyond size, so that it is zero when the file grows again.
func (f *file) cut(size int64) {
	if size >= f.attr.Size {
		return
	}
	f.base = f.base[:min(int64(len(f.base)), size)]
	if p := f.page(size / pageSize); p != nil {
		clear(p[size%pageSize:])
	}
	first := (size + pageSize - 1) / pageSize // the first page that goes
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

// page is a page by number, nil for a hole.
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

// makePage is a page to write to. Errors: ENOSPC.
func (f *file) makePage(i int64) (*page, error) {
	if p := f.page(i); p != nil {
		return p, nil
	}
	if err := f.system.takePages(1); err != nil {
		return nil, err
	}
	for int64(len(f.leaves)) <= i/leafPages {
		f.leaves = append(f.leaves, nil)
	}
	leaf := &f.leaves[i/leafPages]
	for int64(len(*leaf)) <= i%leafPages {
		*leaf = append(*leaf, nil)
	}
	p := new(page)
	if below := i * pageSize; below < int64(len(f.base)) {
		copy(p[:], f.base[below:])
	}
	(*leaf)[i%leafPages] = p
	f.held++
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

// write writes with mu held. An error comes only when nothing was written: what
// fits is written first, as Linux does.
func (f *file) write(p []byte, offset int64) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case f.retired(): // another goroutine closed it just before
		return 0, syscall.EBADF
	case offset >= MaxSize:
		return 0, syscall.EFBIG
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

// fill copies p to its place.
func (f *file) fill(p []byte, offset int64) (int, error) {
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
