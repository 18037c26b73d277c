package imagefile

import (
	"errors"
	"os"
	"path/filepath"

	"loam/block/file"
	"loam/fs/ext4/format"
)

// CreateEmpty creates a sparse file of size bytes, and opens it for reading and writing.
func CreateEmpty(name string, size int64) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil, errorf("remove it, or choose another name", "%s exists already", name)
	case err != nil:
		return nil, errorf("name a file in a folder that can be written", "%s cannot be created: %v", name, errors.Unwrap(err))
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		os.Remove(name)
		return nil, errorf("choose a smaller size, or another folder", "%s cannot have %d bytes: %v", name, size, errors.Unwrap(err))
	}
	return f, nil
}

// Create creates an image of size bytes with an empty ext4 file system, and opens it for reading and writing. On
// error, no file is left behind.
func Create(name string, size int64, c format.Config) (*os.File, error) {
	f, err := CreateEmpty(name, size)
	if err != nil {
		return nil, err
	}
	if err = formatFile(name, c); err == nil {
		err = syncFolder(name)
	}
	if err != nil {
		f.Close()
		os.Remove(name)
		return nil, errorf("", "%s: %v", name, err)
	}
	return f, nil
}

// formatFile makes a file system in a file.
func formatFile(name string, c format.Config) error {
	d, err := file.Open(name, file.Config{Buffered: true})
	if err != nil {
		return err
	}
	return errors.Join(format.Write(d, c), d.Close())
}

// syncFolder makes a new file's name durable, if the host's file system supports fsync of a folder.
func syncFolder(name string) error {
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
