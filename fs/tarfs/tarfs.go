// Package tarfs packs a folder into an archive, and mounts archives: what
// `loam run -v HOST:GUEST` does, on both sides.
//
// The archive is tar (POSIX.1-2001, pax). [Pack] writes it on the host. In the
// guest [Load] reads its headers into a file system in memory, whose files leave
// their content where it lies in the archive: a mapped file of the host, or
// memory of a virtual machine. Nothing is copied before somebody writes.
//
// What a folder cannot give the guest is left out and counted: sockets, devices,
// and what the user may not read. A file with several names becomes several
// files, and extended attributes are left behind.
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

// maxEntries bounds what Load makes of a hostile archive.
const maxEntries = 1 << 22

// Load makes a file system of an archive, which must stay as it is as long as
// the file system is in use. Of its bounds, what lies in the archive takes none.
func Load(image []byte, c memfs.Config) (*memfs.FileSystem, error) {
	system := memfs.New(c)
	if err := Add(system, image); err != nil {
		return nil, err
	}
	return system, nil
}

// Deferred is the file system that Load makes, and makes it when somebody first looks
// at it. Of an archive that is damaged there is what comes before the damage.
func Deferred(image []byte, c memfs.Config) fs.FileSystem {
	return deferred(sync.OnceValue(func() *memfs.FileSystem {
		system := memfs.New(c)
		Add(system, image)
		return system
	}))
}

// deferred loads, or has loaded.
type deferred func() *memfs.FileSystem

// Root implements fs.FileSystem.
func (d deferred) Root() fs.Directory { return d().Root() }

// Usage implements fs.FileSystem.
func (d deferred) Usage() fs.Usage { return d().Usage() }

// MakeNameless implements fs.NamelessMaker.
func (d deferred) MakeNameless(mode fs.Mode, owner fs.Owner, use fs.NamelessUse) (fs.Node, error) {
	return d().MakeNameless(mode, owner, use)
}

// Sync implements fs.FileSystem: memory is all there is.
func (deferred) Sync() error { return nil }

// Add puts the files of an archive into a file system. Folders may be there already.
func Add(system *memfs.FileSystem, image []byte) error {
	l := &loader{image: image, system: system}
	l.view = fs.NewView(fs.NewTree(l.system))
	l.view.Umask = 0
	// The bytes.Reader seeks, so that the tar.Reader skips content unread.
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

// loader is a Load under way.
type loader struct {
	image   []byte
	system  *memfs.FileSystem
	view    *fs.View
	folders []*tar.Header // whose times are set at the end
}

// add makes one file.
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
			err = l.system.SetContent(p.Node, content[:h.Size:h.Size])
		}
		if err != nil {
			return err
		}
	case tar.TypeLink:
		return nil
	}
	return l.describe(h)
}

// make makes the file without anything in it.
func (l *loader) make(h *tar.Header, name string) error {
	v := l.view
	mode := fs.Mode(h.Mode) & fs.Permissions
	switch h.Typeflag {
	case tar.TypeDir:
		err := v.Mkdir(v.Root, name, mode)
		if p, lookup := v.Lookup(v.Root, name, false); err != nil && lookup == nil && p.Node.Attr().Mode.Type() == fs.Dir {
			return nil // a name below it came first
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

// parents makes the folders above a name that the archive does not have.
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

// describe sets what making a file does not: owner, mode, times.
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
	return p.Node.Change(c)
}

// finish sets the times of folders, which making what lies in them has changed.
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
