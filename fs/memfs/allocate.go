package memfs

import (
	"loam/abi/linux"
	"loam/fs"
)

// fallocate(2). Space is not set aside: a file takes pages when they are written, so a later write may still return
// ENOSPC.

// Allocate implements fs.Allocator.
func (h handle) Allocate(mode fs.AllocateMode, offset, length int64) error {
	f := h.file
	end := offset + length
	if end > MaxSize {
		return linux.EFBIG
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	change := f.zeroRange
	switch mode &^ fs.UnshareRange {
	case 0:
		if end <= f.attr.Size {
			return nil
		}
		change = func(int64, int64) error { return f.resize(end) }
	case fs.KeepSize:
		return nil
	case fs.PunchHole | fs.KeepSize, fs.ZeroRange | fs.KeepSize:
	case fs.ZeroRange:
		change = f.zeroAndGrow
	case fs.CollapseRange:
		change = f.collapse
	case fs.InsertRange:
		change = f.insert
	default:
		return linux.EOPNOTSUPP
	}
	if err := f.mayChange(mode); err != nil {
		return err
	}
	if err := change(offset, end); err != nil {
		return err
	}
	f.attr.Modify = f.system.now()
	f.attr.Status = f.attr.Modify
	return nil
}

// mayChange returns EPERM if a seal forbids to change content. Resizing has seals of its own.
func (f *file) mayChange(mode fs.AllocateMode) error {
	if mode&^(fs.KeepSize|fs.UnshareRange) != 0 && f.seals&(fs.SealWrite|fs.SealFutureWrite) != 0 {
		return linux.EPERM
	}
	return nil
}

// zeroRange makes a range read as zeros, up to the end of the file. Whole pages become holes.
func (f *file) zeroRange(offset, end int64) error {
	end = min(end, f.attr.Size)
	if f.paged != nil {
		return f.zeroPaged(offset, end)
	}
	if f.mapped.memory != nil {
		if offset < end {
			clear(f.mapped.bytes[offset:end])
		}
		return nil
	}
	for at := offset; at < end; at = (at/pageSize + 1) * pageSize {
		if leaf := at / pageSize / leafPages; f.isEmpty(leaf) {
			at = (leaf+1)*leafSize - pageSize // the rest of this leaf has no pages: continue at the next leaf
			continue
		}
		if err := f.zeroPage(at, min(end, (at/pageSize+1)*pageSize)); err != nil {
			return err
		}
	}
	return nil
}

// zeroPage zeroes a part of one page. If base has content at the page, a page is allocated that hides this
// content, which may return ENOSPC.
func (f *file) zeroPage(from, to int64) error {
	i := from / pageSize
	if i*pageSize < int64(len(f.base)) {
		p, err := f.makePage(i)
		if err == nil {
			clear(p[from-i*pageSize : to-i*pageSize])
		}
		return err
	}
	p := f.page(i)
	switch {
	case p == nil:
	case to-from == pageSize || from%pageSize == 0 && to == f.attr.Size:
		f.leaves[i/leafPages][i%leafPages] = nil
		f.held--
		return f.system.takePages(-1)
	default:
		clear(p[from-i*pageSize : to-i*pageSize])
	}
	return nil
}

// zeroAndGrow is zeroRange of a range that may end behind the end of the file, which grows.
func (f *file) zeroAndGrow(offset, end int64) error {
	if end > f.attr.Size {
		if err := f.mayResize(end); err != nil {
			return err
		}
	}
	if err := f.zeroRange(offset, end); err != nil || end <= f.attr.Size {
		return err
	}
	return f.resize(end)
}

// collapse removes a range of whole pages, which must end before the end of the file.
func (f *file) collapse(offset, end int64) error {
	if (offset|end)%pageSize != 0 || end >= f.attr.Size {
		return linux.EINVAL
	}
	size := f.attr.Size - (end - offset)
	if err := f.mayResize(size); err != nil {
		return err
	}
	switch {
	case f.paged != nil:
		if err := f.movePaged(end, offset, f.attr.Size-end); err != nil {
			return err
		}
		return f.resize(size)
	case f.mapped.memory != nil:
		copy(f.mapped.bytes[offset:], f.mapped.bytes[end:f.attr.Size])
		return f.resize(size)
	}
	if err := f.ownContent(); err != nil {
		return err
	}
	before := f.held
	f.rebuild(offset/pageSize, end/pageSize, (offset-end)/pageSize)
	f.attr.Size = size
	return f.system.takePages(f.held - before)
}

// insert adds a hole of whole pages before the end of the file.
func (f *file) insert(offset, end int64) error {
	size := f.attr.Size + end - offset
	switch {
	case (offset|end)%pageSize != 0 || offset >= f.attr.Size:
		return linux.EINVAL
	case size > MaxSize:
		return linux.EFBIG
	}
	if err := f.mayResize(size); err != nil {
		return err
	}
	if was := f.attr.Size; f.paged != nil || f.mapped.memory != nil {
		if err := f.resize(size); err != nil {
			return err
		}
		if f.paged == nil {
			copy(f.mapped.bytes[end:size], f.mapped.bytes[offset:was])
		} else if err := f.movePaged(offset, end, was-offset); err != nil {
			return err
		}
		return f.zeroRange(offset, end)
	}
	if err := f.ownContent(); err != nil {
		return err
	}
	f.rebuild(offset/pageSize, offset/pageSize, (end-offset)/pageSize)
	f.attr.Size = size
	return nil
}

// ownContent copies base, the file's read-only initial content, to pages. Errors: ENOSPC.
func (f *file) ownContent() error {
	for i := int64(0); i*pageSize < int64(len(f.base)); i++ {
		if _, err := f.makePage(i); err != nil {
			return err
		}
	}
	f.base = nil
	return nil
}

// rebuild drops the pages from first up to last, and moves those from last on by a number of pages.
func (f *file) rebuild(first, last, by int64) {
	was := f.leaves
	f.leaves, f.held = nil, 0
	for i, leaf := range was {
		for j, p := range leaf {
			index := int64(i*leafPages + j)
			switch {
			case p == nil || index >= first && index < last:
				continue
			case index >= last:
				index += by
			}
			f.put(index, p)
		}
	}
}

// put stores a page at an index that has none.
func (f *file) put(i int64, p *page) {
	for int64(len(f.leaves)) <= i/leafPages {
		f.leaves = append(f.leaves, nil)
	}
	leaf := &f.leaves[i/leafPages]
	for int64(len(*leaf)) <= i%leafPages {
		*leaf = append(*leaf, nil)
	}
	(*leaf)[i%leafPages] = p
	f.held++
}

// zeroPaged zeroes a range in the page cache. Whole pages become holes.
func (f *file) zeroPaged(offset, end int64) error {
	if offset >= end {
		return nil
	}
	first, last := (offset+pageSize-1)/pageSize, end/pageSize
	if end == f.attr.Size {
		last = (end + pageSize - 1) / pageSize
	}
	if first >= last {
		return f.blankPaged(offset, end)
	}
	if err := f.paged.Punch(uint64(first), uint64(last)); err != nil {
		return err
	}
	if err := f.blankPaged(offset, first*pageSize); err != nil {
		return err
	}
	return f.blankPaged(last*pageSize, end)
}

// blankPaged zeroes the data of a range in the page cache. The pages stay.
func (f *file) blankPaged(offset, end int64) error {
	var zeros page
	for offset < end {
		at, ok := f.paged.Next(offset, true)
		if !ok || at >= end {
			return nil
		}
		n := min(pageSize-at%pageSize, end-at)
		if _, err := f.paged.WriteAt(zeros[:n], at); err != nil {
			return err
		}
		offset = at + n
	}
	return nil
}

// movePaged moves n bytes in the page cache, a page at a time. If to is after from, it begins with the last
// page, so that no byte is overwritten before it is moved. Holes become zeros.
func (f *file) movePaged(from, to, n int64) error {
	var piece page
	for done := int64(0); done < n; {
		size := min(pageSize, n-done)
		at := done
		if to > from {
			if size = (n - done) % pageSize; size == 0 {
				size = pageSize
			}
			at = n - done - size
		}
		if _, err := f.paged.ReadAt(piece[:size], from+at); err != nil {
			return err
		}
		if _, err := f.paged.WriteAt(piece[:size], to+at); err != nil {
			return err
		}
		done += size
	}
	return nil
}
