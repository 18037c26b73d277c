package imagefile

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"loam/fs"
)

// Copies between an image and the host. Modes, times of modification, symbolic links and, where the user may set them,
// owners are kept. A file that exists is replaced. Devices, pipes and sockets are skipped.

// Skipped is called with each file that is not copied, and why. It may be nil.
type Skipped func(name, why string)

func (s Skipped) report(name, why string) {
	if s != nil {
		s(name, why)
	}
}

const noFile = "it is neither a file, a folder nor a symbolic link"

// target returns where a copy of a file with a base name goes: into the destination (the
// parameter to) if that is a folder.
func target(isDir bool, to, base string) string {
	if isDir {
		return path.Join(to, base)
	}
	return to
}

// CopyIn copies a file or a folder of the host into the image.
func (i *Image) CopyIn(from, to string, skipped Skipped) error {
	st, err := os.Lstat(from)
	if err != nil {
		return errorf("", "%s cannot be read: %v", from, errors.Unwrap(err))
	}
	place, err := i.View.LookupDir(i.View.Root, to)
	to = target(err == nil && place.Node != nil, to, filepath.Base(from))
	return i.copyIn(from, to, st, skipped)
}

func (i *Image) copyIn(from, to string, st os.FileInfo, skipped Skipped) (err error) {
	v := i.View
	mode := fs.Mode(st.Sys().(*syscall.Stat_t).Mode) & fs.Permissions
	switch st.Mode().Type() {
	case iofs.ModeDir:
		if err = v.Mkdir(v.Root, to, mode); errors.Is(err, iofs.ErrExist) {
			_, err = v.LookupDir(v.Root, to)
		}
		if err == nil {
			err = i.copyFolderIn(from, to, skipped)
		}
	case iofs.ModeSymlink:
		var text string
		if text, err = os.Readlink(from); err == nil {
			v.Unlink(v.Root, to) // an existing file is removed, so that it can be replaced
			err = v.Symlink(text, v.Root, to)
		}
	case 0:
		err = i.copyFileIn(from, to, mode)
	default:
		skipped.report(from, noFile)
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	if err != nil {
		return errorf("", "%s cannot be copied to %s:%s: %v", from, i.name, to, err)
	}
	return i.setAttributes(to, st)
}

// setAttributes gives a copy the owner, mode and time of the original.
func (i *Image) setAttributes(to string, st os.FileInfo) error {
	place, err := i.View.Lookup(i.View.Root, to, false)
	if err != nil {
		return err
	}
	own := st.Sys().(*syscall.Stat_t)
	c := fs.Change{
		Fields: fs.SetOwner | fs.SetGroup | fs.SetModify | fs.SetAccess, UID: own.Uid, GID: own.Gid,
		Modify: fs.Time(own.Mtim.Nano()), Access: fs.Time(own.Atim.Nano()),
	}
	if st.Mode()&os.ModeSymlink == 0 {
		c.Fields |= fs.SetMode
		c.Mode = fs.Mode(own.Mode) & fs.Permissions
	}
	return place.Node.Change(c)
}

func (i *Image) copyFolderIn(from, to string, skipped Skipped) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		st, err := e.Info()
		if err == nil {
			err = i.copyIn(filepath.Join(from, e.Name()), path.Join(to, e.Name()), st, skipped)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (i *Image) copyFileIn(from, to string, mode fs.Mode) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := i.View.Open(i.View.Root, to, fs.WriteOnly|fs.Create|fs.Truncate, mode)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(whole{w}, struct{ io.Reader }{r}, make([]byte, copySize))
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return err
}

// whole is an io.Writer over a file. It writes all of p or returns an error, while fs.File.Write may write a
// part of p without an error when the disk becomes full.
type whole struct{ f *fs.File }

func (w whole) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = w.f.Write(p[n:])
		n += k
	}
	return n, err
}

// copySize is the size of one read in bytes.
const copySize = 1 << 20

// CopyOut copies a file or a folder of the image to the host.
func (i *Image) CopyOut(from, to string, skipped Skipped) error {
	place, err := i.View.Lookup(i.View.Root, from, false)
	if err != nil {
		return i.missing(from, err)
	}
	st, err := os.Stat(to)
	return i.copyOut(place, from, target(err == nil && st.IsDir(), to, path.Base(path.Clean("/"+from))), skipped)
}

// missing is the error for a file of the image that cannot be found or read.
func (i *Image) missing(name string, err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		return errorf("look with loam disk ls "+i.name+" "+path.Dir(path.Clean("/"+name)), "%s has no %s", i.name, name)
	}
	return errorf("", "%s:%s: %v", i.name, name, err)
}

func (i *Image) copyOut(place fs.Place, from, to string, skipped Skipped) (err error) {
	a := place.Node.Attr()
	switch a.Mode.Type() {
	case fs.Dir:
		if err = os.Mkdir(to, 0o700); errors.Is(err, iofs.ErrExist) {
			err = nil
		}
		if err == nil {
			err = i.copyFolderOut(place, from, to, skipped)
		}
	case fs.Symlink:
		var text string
		if text, err = place.Node.(fs.Link).Target(); err == nil {
			if old, lerr := os.Lstat(to); lerr == nil && !old.IsDir() {
				os.Remove(to)
			}
			err = os.Symlink(text, to)
		}
	case fs.Regular:
		err = i.copyFileOut(place, to)
	default:
		skipped.report(i.name+":"+from, noFile)
		return nil
	}
	var own *Error
	switch {
	case errors.As(err, &own):
		return err
	case err != nil:
		return errorf("", "%s:%s cannot be copied to %s: %v", i.name, from, to, err)
	}
	os.Lchown(to, int(a.UID), int(a.GID)) // this fails without the privilege to change owners
	if a.Mode.Type() == fs.Symlink {
		return nil
	}
	modified := time.Unix(0, int64(a.Modify))
	return errors.Join(syscall.Chmod(to, uint32(a.Mode&fs.Permissions)), os.Chtimes(to, modified, modified))
}

func (i *Image) copyFolderOut(place fs.Place, from, to string, skipped Skipped) error {
	names, err := i.names(place)
	if err != nil {
		return err
	}
	for _, name := range names {
		below := path.Join(from, name)
		child, err := i.View.Lookup(i.View.Root, below, false)
		if err == nil {
			err = i.copyOut(child, below, filepath.Join(to, name), skipped)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (i *Image) copyFileOut(place fs.Place, to string) error {
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(i.read(place, w), w.Close())
}

// read writes the content of a file to w.
func (i *Image) read(place fs.Place, w io.Writer) error {
	f, err := i.View.OpenPlace(place, fs.ReadOnly)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, copySize)
	for {
		n, err := f.Read(b)
		if err != nil || n == 0 {
			return err
		}
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
	}
}
