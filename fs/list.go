package fs

import "syscall"

// Positions in a listing: before ".", before "..", and from there on the
// directory's own cursors, moved up.
const (
	atDot = iota
	atDotDot
	atEntries
)

// ReadDir yields the entries of a directory from the file's offset on, "." and
// ".." first, and moves the offset behind each that is taken: yield says false
// for an entry that has no room any more. The Cursor of an entry is the offset
// behind it. Errors: ENOTDIR, EBADF; ENOENT for a directory that has been removed.
func (f *File) ReadDir(yield func(Entry) bool) error {
	if f.Flags()&PathOnly != 0 {
		return syscall.EBADF
	}
	dir, err := f.place.directory()
	if err != nil {
		return err
	}
	if dir.Attr().Links == 0 {
		return syscall.ENOENT
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	take := func(e Entry) bool {
		if !yield(e) {
			return false
		}
		f.offset = int64(e.Cursor)
		return true
	}
	if f.offset == atDot && !take(Entry{".", dir.Attr().Inode, Dir, atDotDot}) {
		return nil
	}
	if f.offset == atDotDot && !take(Entry{"..", dir.Parent().Attr().Inode, Dir, atEntries}) {
		return nil
	}
	return dir.Read(uint64(f.offset-atEntries), func(e Entry) bool {
		e.Cursor += atEntries
		return take(e)
	})
}
