package memfs

import (
	"loam/abi/linux"
	"loam/fs"
)

// MakeNameless implements fs.NamelessMaker.
func (m *FileSystem) MakeNameless(mode fs.Mode, owner fs.Owner, use fs.NamelessUse) (fs.Node, error) {
	if err := m.takeFile(); err != nil {
		return nil, err
	}
	f := &file{nameless: true, nameable: use == fs.ToName}
	if use != fs.ToSeal {
		f.seals = fs.SealSeals
	}
	f.init(m, fs.Regular|mode&fs.Permissions, owner)
	return f, nil
}

// Seals implements fs.Sealable.
func (f *file) Seals() fs.Seals {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.seals
}

// AddSeals implements fs.Sealable.
func (f *file) AddSeals(s fs.Seals) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.seals&fs.SealSeals != 0:
		return linux.EPERM
	case s&^f.seals&fs.SealWrite != 0 && (f.mapped.count > 0 || f.paged != nil && f.paged.Storable()):
		return linux.EBUSY
	}
	f.seals |= s
	return nil
}

// mayResize checks whether the seals allow a new size. Errors: EPERM.
func (f *file) mayResize(size int64) error {
	if size < f.attr.Size && f.seals&fs.SealShrink != 0 || size > f.attr.Size && f.seals&fs.SealGrow != 0 {
		return linux.EPERM
	}
	return nil
}

// mayWrite returns how many of n bytes may be written at offset. With SealGrow it allows a write up to
// the last whole page, because Linux checks seals page by page. Errors: EPERM if no byte may be
// written.
func (f *file) mayWrite(n int, offset int64) (int, error) {
	switch {
	case f.seals&(fs.SealWrite|fs.SealFutureWrite) != 0:
		return 0, linux.EPERM
	case f.seals&fs.SealGrow == 0 || offset+int64(n) <= f.attr.Size:
		return n, nil
	}
	whole := f.attr.Size&^(pageSize-1) - offset
	if whole <= 0 {
		return 0, linux.EPERM
	}
	return int(whole), nil
}
