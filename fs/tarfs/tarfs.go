// Package tarfs packs a directory into an archive, and mounts archives. It implements both sides of
// `loam run -v HOST:GUEST`.
//
// The format is tar (POSIX.1-2001, pax). [Pack] writes the archive on the host. In the guest, [Load]
// reads its headers into a file system in memory. The content of the files stays in the archive, which
// is a mapped file of the host or memory of a virtual machine. A page is copied only when a program
// writes to it.
//
// Pack leaves out and counts files that cannot be transferred: sockets, devices, and files that the
// user may not read. A file with several names becomes several files, except for PackRoot. Extended attributes are
// dropped, except for the capabilities of programs with PackRoot.
package tarfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"strings"
	"sync"

	"loam/fs"
	"loam/fs/memfs"
)

// maxEntries limits the number of files that Load creates from a hostile archive.
const maxEntries = 1 << 22

// Load returns a file system with the files of an archive. The caller must keep image valid and
// unchanged while the file system is in use. Content in the archive does not count towards the limits
// in c.
func Load(image []byte, c memfs.Config) (*memfs.FileSystem, error) {
	system := memfs.New(c)
	if err := Add(system, image); err != nil {
		return nil, err
	}
	return system, nil
}

// Deferred returns the file system that Load returns, but loads it on first use. If the archive is
// damaged, it contains the files before the damage.
func Deferred(image []byte, c memfs.Config) fs.FileSystem {
	return deferred(sync.OnceValue(func() *memfs.FileSystem {
		system := memfs.New(c)
		Add(system, image)
		return system
	}))
}

// deferred loads the file system on the first call and returns it.
type deferred func() *memfs.FileSystem

// Root implements fs.FileSystem.
func (d deferred) Root() fs.Directory { return d().Root() }

// Usage implements fs.FileSystem.
func (d deferred) Usage() fs.Usage { return d().Usage() }

// MakeNameless implements fs.NamelessMaker.
func (d deferred) MakeNameless(mode fs.Mode, owner fs.Owner, use fs.NamelessUse) (fs.Node, error) {
	return d().MakeNameless(mode, owner, use)
}

// Sync implements fs.FileSystem. There is no stable storage.
func (deferred) Sync() error { return nil }

// Add adds the files of an archive to a file system. Directories of the archive may exist already.
func Add(system *memfs.FileSystem, image []byte) error {
	l := &loader{image: image, system: system}
	l.view = fs.NewView(fs.NewTree(l.system))
	l.view.Umask = 0
	// bytes.Reader implements io.Seeker, so tar.Reader skips content without reading it.
	from := bytes.NewReader(image)
	archive := tar.NewReader(from)
	for range maxEntries {
		h, err := archive.Next()
		if err == io.EOF {
			return l.finish()
		}
		if err != nil {
			return fmt.Errorf("tarfs: %w", err)
		}
		content := image[len(image)-from.Len():]
		if h.Typeflag == tar.TypeReg && int64(len(content)) < h.Size {
			return fmt.Errorf("tarfs: %s: %w", h.Name, io.ErrUnexpectedEOF)
		}
		if err := l.add(h, content); err != nil {
			return fmt.Errorf("tarfs: %s: %w", h.Name, err)
		}
	}
	return fmt.Errorf("tarfs: more than %d files", maxEntries)
}

// loader is a Load in progress.
type loader struct {
	image   []byte
	system  *memfs.FileSystem
	view    *fs.View
	folders []*tar.Header // headers of directories; finish sets their attributes at the end
}

// add creates one file with its content and attributes.
func (l *loader) add(h *tar.Header, content []byte) error {
	name := path.Clean("/" + h.Name)
	if name == "/" {
		l.folders = append(l.folders, h)
		return nil
	}
	err := l.make(h, name)
	if isMissing(err) {
		if err = l.parents(name); err == nil {
			err = l.make(h, name)
		}
	}
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		l.folders = append(l.folders, h)
		return nil
	case tar.TypeReg:
		p, err := l.view.Lookup(l.view.Root, name, false)
		if err == nil {
			err = memfs.SetContent(p.Node, content[:h.Size:h.Size])
		}
		if err != nil {
			return err
		}
	case tar.TypeLink:
		return nil
	}
	return l.describe(h)
}

// make creates an empty file.
func (l *loader) make(h *tar.Header, name string) error {
	v := l.view
	mode := fs.Mode(h.Mode) & fs.Permissions
	switch h.Typeflag {
	case tar.TypeDir:
		err := v.Mkdir(v.Root, name, mode)
		if p, lookup := v.Lookup(v.Root, name, false); err != nil && lookup == nil && p.Node.Attr().Mode.Type() == fs.Dir {
			return nil // this directory was created before, as the parent of another file
		}
		return err
	case tar.TypeReg:
		return v.Mknod(v.Root, name, fs.Regular|mode, fs.Device{})
	case tar.TypeFifo:
		return v.Mknod(v.Root, name, fs.Fifo|mode, fs.Device{})
	case tar.TypeSymlink:
		return v.Symlink(h.Linkname, v.Root, name)
	case tar.TypeLink:
		old, err := v.Lookup(v.Root, path.Clean("/"+h.Linkname), false)
		if err != nil {
			return err
		}
		return v.Link(old, v.Root, name)
	}
	return fmt.Errorf("type %q is not known", h.Typeflag)
}

// parents creates the directories above a name that are missing in the archive.
func (l *loader) parents(name string) error {
	for i := range name {
		if name[i] != '/' || i == 0 {
			continue
		}
		if err := l.view.Mkdir(l.view.Root, name[:i], 0o755); err != nil && !exists(err) {
			return err
		}
	}
	return nil
}

// describe sets the attributes that make does not: owner, mode and times.
func (l *loader) describe(h *tar.Header) error {
	p, err := l.view.Lookup(l.view.Root, path.Clean("/"+h.Name), false)
	if err != nil {
		return err
	}
	at := fs.Time(h.ModTime.UnixNano())
	c := fs.Change{
		Fields: fs.SetOwner | fs.SetGroup | fs.SetAccess | fs.SetModify | fs.SetMode,
		UID:    uint32(h.Uid), GID: uint32(h.Gid), Access: at, Modify: at, Mode: fs.Mode(h.Mode) & fs.Permissions,
	}
	if h.Typeflag == tar.TypeSymlink {
		c.Fields &^= fs.SetMode
	}
	return errors.Join(p.Node.Change(c), setXattrs(p.Node, h))
}

// setXattrs sets extended attributes of a file: its capabilities, and attributes of the classes user and trusted.
func setXattrs(n fs.Node, h *tar.Header) error {
	to, ok := n.(fs.Attributed)
	if !ok || len(h.PAXRecords) == 0 {
		return nil
	}
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, xattrRecord)
		if !ok || name != capabilities && !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "trusted.") {
			continue
		}
		if err := to.SetXattr(name, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// finish sets the attributes of directories. Creating files in them has changed their times.
func (l *loader) finish() error {
	for _, h := range l.folders {
		if err := l.describe(h); err != nil {
			return fmt.Errorf("tarfs: %s: %w", strings.TrimSuffix(h.Name, "/"), err)
		}
	}
	return nil
}

func isMissing(err error) bool { return errors.Is(err, iofs.ErrNotExist) }
func exists(err error) bool    { return errors.Is(err, iofs.ErrExist) }
