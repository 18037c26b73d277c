// Package imagefile works on ext4 images in files of the host: it creates and locks them, and reads and writes the
// files in them without mounting and without privileges.
//
// Errors that a user can act on are of type *Error.
package imagefile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"loam/block/file"
	"loam/fs"
	"loam/fs/ext4"
	"loam/fs/ext4/disk"
)

// Error is an error that the user can act on: what is wrong, and what to do. Next may be empty.
type Error struct{ What, Next string }

// Error implements error.
func (e *Error) Error() string {
	if e.Next == "" {
		return e.What
	}
	return e.What + ": " + e.Next
}

func errorf(next, format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Next: next}
}

// Image is an image whose file system is open.
type Image struct {
	// View sees the files, as the superuser.
	View *fs.View
	// Summary describes the file system.
	Summary disk.Summary

	name   string
	device *file.Device
	system *ext4.FileSystem
}

// open opens and locks the file of an image, and examines it.
func open(name string, writable bool) (*file.Device, disk.Summary, error) {
	mode := os.O_RDONLY
	if writable {
		mode = os.O_RDWR
	}
	f, err := os.OpenFile(name, mode, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, disk.Summary{}, errorf("create it with loam disk create --size 1G "+name, "there is no %s", name)
	case err != nil:
		return nil, disk.Summary{}, errorf("", "%s cannot be opened: %v", name, errors.Unwrap(err))
	}
	summary, err := examine(f, writable)
	if err != nil {
		f.Close()
		return nil, summary, err
	}
	d, err := file.New(f, file.Config{ReadOnly: !writable, Buffered: true})
	if err != nil {
		return nil, summary, errorf("", "%s: %v", name, err)
	}
	return d, summary, nil
}

// examine locks an image and reads its superblock.
func examine(f *os.File, writable bool) (s disk.Summary, err error) {
	st, err := f.Stat()
	if err != nil {
		return s, err
	}
	size, err := f.Seek(0, io.SeekEnd) // Seek also finds the size of a block device
	if st.IsDir() || err != nil {
		return s, errorf("name the file of an image", "%s is no image of a disk", f.Name())
	}
	if err := Lock(f, !writable); err != nil {
		return s, errorf("end the program that uses it, or copy it", "%s is in use: %v", f.Name(), err)
	}
	s, err = disk.Examine(f, size)
	switch {
	case errors.Is(err, disk.ErrNone):
		return s, errorf("name an image that loam disk create or mke2fs has made", "%s has no ext4 file system", f.Name())
	case err != nil:
		return s, errorf("", "%s: %v", f.Name(), err)
	case writable && s.ReadOnly != "":
		return s, errorf("", "%s cannot be written: %s", f.Name(), s.ReadOnly)
	}
	return s, nil
}

// Open opens an image. One that is not writable stays as it is, also if its journal has to be recovered.
func Open(name string, writable bool) (*Image, error) {
	d, summary, err := open(name, writable)
	if err != nil {
		return nil, err
	}
	s, err := ext4.Open(d, ext4.Config{ReadOnly: !writable})
	if err != nil {
		d.Close()
		return nil, errorf("look at it with loam disk check", "%s: %v", name, err)
	}
	return &Image{View: newView(s), Summary: summary, name: name, device: d, system: s}, nil
}

func newView(s *ext4.FileSystem) *fs.View {
	v := fs.NewView(fs.NewTree(s))
	v.Umask = 0
	return v
}

// Usage returns the size and the free space of the file system.
func (i *Image) Usage() fs.Usage { return i.system.Usage() }

// Close makes changes durable and closes the image.
func (i *Image) Close() error {
	if err := errors.Join(i.system.Close(), i.device.Close()); err != nil {
		return errorf("", "%s: %v", i.name, err)
	}
	return nil
}

// Check checks the file system of an image, and changes nothing.
func Check(name string) (*ext4.Findings, error) {
	d, _, err := open(name, false)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, err := ext4.Check(d)
	if err != nil {
		return nil, errorf("have e2fsck repair it", "%s: %v", name, err)
	}
	return f, nil
}
