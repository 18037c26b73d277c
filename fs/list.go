package fs

import "loam/abi/linux"

// Offsets in a listing: "." and "..", followed by the directory's own cursors, increased by atEntries.
const (
	atDot = iota
	atDotDot
	atEntries
)

// ReadDir yields the entries of a directory from the file's offset on, "." and ".." first. It advances
// the offset past each entry for which yield returns true; false means that the entry did not fit. The
// Cursor of a yielded entry is the offset after it. Errors: ENOTDIR, EBADF; ENOENT for a removed
// directory.
func (f *File) ReadDir(yield func(Entry) bool) error {
	if f.Flags()&PathOnly != 0 {
		return linux.EBADF
	}
	dir, err := f.place.directory()
	if err != nil {
		return err
	}
	if dir.Attr().Links == 0 {
		return linux.ENOENT
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	take := func(e Entry) bool {
		if !yield(e) {
			return false
		}
		f.offset.Store(int64(e.Cursor))
		return true
	}
	if f.offset.Load() == atDot && !take(Entry{".", dir.Attr().Inode, Dir, atDotDot}) {
		return nil
	}
	if f.offset.Load() == atDotDot && !take(Entry{"..", dir.Parent().Attr().Inode, Dir, atEntries}) {
		return nil
	}
	return dir.Read(uint64(f.offset.Load()-atEntries), func(e Entry) bool {
		e.Cursor += atEntries
		return take(e)
	})
}
