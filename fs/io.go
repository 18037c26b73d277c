package fs

import (
	"io"
	iofs "io/fs"
	"path"
	"time"

	"loam/abi/linux"
)

// IO returns a read-only io/fs file system of the tree below v's root.
func (v *View) IO() iofs.FS { return ioFS{v} }

type ioFS struct{ view *View }

// lookup resolves a name of io/fs, which is relative and contains no "." or "..".
func (s ioFS) lookup(op, name string, follow bool) (Place, error) {
	if !iofs.ValidPath(name) {
		return Place{}, &iofs.PathError{Op: op, Path: name, Err: iofs.ErrInvalid}
	}
	p, err := s.view.Lookup(s.view.Root, name, follow)
	if err != nil {
		return Place{}, &iofs.PathError{Op: op, Path: name, Err: err}
	}
	return p, nil
}

// Open implements io/fs.FS.
func (s ioFS) Open(name string) (iofs.File, error) {
	p, err := s.lookup("open", name, true)
	if err != nil {
		return nil, err
	}
	f, err := s.view.OpenPlace(p, ReadOnly)
	if err != nil {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: err}
	}
	return &ioFile{s, f, name}, nil
}

// Lstat implements io/fs.ReadLinkFS.
func (s ioFS) Lstat(name string) (iofs.FileInfo, error) {
	p, err := s.lookup("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return ioInfo{path.Base(name), p.Node.Attr()}, nil
}

// ReadLink implements io/fs.ReadLinkFS.
func (s ioFS) ReadLink(name string) (string, error) {
	p, err := s.lookup("readlink", name, false)
	if err != nil {
		return "", err
	}
	link, ok := p.Node.(Link)
	if !ok {
		return "", &iofs.PathError{Op: "readlink", Path: name, Err: linux.EINVAL}
	}
	return link.Target()
}

// ioFile is an open file of ioFS.
type ioFile struct {
	system ioFS
	file   *File
	name   string
}

// Stat implements io/fs.File.
func (f *ioFile) Stat() (iofs.FileInfo, error) {
	return ioInfo{path.Base(f.name), f.file.Attr()}, nil
}

// Read implements io/fs.File.
func (f *ioFile) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	switch {
	case err != nil:
		return n, &iofs.PathError{Op: "read", Path: f.name, Err: err}
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Seek implements io.Seeker.
func (f *ioFile) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// Close implements io/fs.File.
func (f *ioFile) Close() error { return f.file.Close() }

// ReadDir implements io/fs.ReadDirFile.
func (f *ioFile) ReadDir(n int) ([]iofs.DirEntry, error) {
	var entries []iofs.DirEntry
	err := f.file.ReadDir(func(e Entry) bool {
		if n > 0 && len(entries) == n {
			return false
		}
		if e.Name != "." && e.Name != ".." {
			entries = append(entries, ioEntry{f.system, path.Join(f.name, e.Name), e})
		}
		return true
	})
	switch {
	case err != nil:
		return entries, &iofs.PathError{Op: "readdir", Path: f.name, Err: err}
	case n > 0 && len(entries) == 0:
		return nil, io.EOF
	}
	return entries, nil
}

// ioEntry is an entry of a directory.
type ioEntry struct {
	system ioFS
	path   string
	entry  Entry
}

func (e ioEntry) Name() string                 { return e.entry.Name }
func (e ioEntry) IsDir() bool                  { return e.entry.Type == Dir }
func (e ioEntry) Type() iofs.FileMode          { return e.entry.Type.io().Type() }
func (e ioEntry) Info() (iofs.FileInfo, error) { return e.system.Lstat(e.path) }

// ioInfo is the result of Stat.
type ioInfo struct {
	name string
	attr Attr
}

func (i ioInfo) Name() string        { return i.name }
func (i ioInfo) Size() int64         { return i.attr.Size }
func (i ioInfo) Mode() iofs.FileMode { return i.attr.Mode.io() }
func (i ioInfo) ModTime() time.Time  { return time.Unix(0, int64(i.attr.Modify)) }
func (i ioInfo) IsDir() bool         { return i.attr.Mode.Type() == Dir }
func (i ioInfo) Sys() any            { return i.attr }

// ioBits maps mode bits to those of io/fs.
var ioBits = []struct {
	mask, mode Mode
	io         iofs.FileMode
}{
	{TypeMask, Dir, iofs.ModeDir}, {TypeMask, Symlink, iofs.ModeSymlink}, {TypeMask, Fifo, iofs.ModeNamedPipe},
	{TypeMask, Socket, iofs.ModeSocket}, {TypeMask, BlockDevice, iofs.ModeDevice},
	{TypeMask, CharDevice, iofs.ModeDevice | iofs.ModeCharDevice},
	{SetUID, SetUID, iofs.ModeSetuid}, {SetGID, SetGID, iofs.ModeSetgid}, {Sticky, Sticky, iofs.ModeSticky},
}

func (m Mode) io() iofs.FileMode {
	mode := iofs.FileMode(m & 0o777)
	for _, b := range ioBits {
		if m&b.mask == b.mode {
			mode |= b.io
		}
	}
	return mode
}
