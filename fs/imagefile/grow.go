package imagefile

import (
	"errors"
	"os"

	"loam/abi/linux"
	"loam/block/file"
	"loam/fs/ext4"
)

// Grow makes an image, and the file system in it, larger: the file then has size bytes. On error, the file keeps its
// size, unless the file system has already grown in part.
func Grow(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errorf("create it with loam disk create --size 1G "+name, "there is no %s", name)
	case err != nil:
		return errorf("", "%s cannot be opened: %v", name, errors.Unwrap(err))
	}
	defer f.Close() // after success or failure of growSystem, f is closed already
	summary, err := examine(f, true)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return errorf("resize the device, and use resize2fs", "%s is not a file", name)
	case size < st.Size():
		return errorf("use resize2fs to make it smaller", "%s has %d bytes already", name, st.Size())
	}
	if err := f.Truncate(size); err != nil {
		return errorf("choose a smaller size", "%s cannot have %d bytes: %v", name, size, errors.Unwrap(err))
	}
	if err := growSystem(name, f, uint64(size)/uint64(summary.BlockSize)); err != nil {
		if now, _ := examineSize(name); now == summary.Blocks {
			os.Truncate(name, st.Size())
		}
		return err
	}
	return nil
}

// growSystem makes the file system in f larger.
func growSystem(name string, f *os.File, blocks uint64) error {
	d, err := file.New(f, file.Config{Buffered: true})
	if err != nil {
		return errorf("", "%s: %v", name, err)
	}
	defer d.Close()
	s, err := ext4.Open(d, ext4.Config{})
	if err != nil {
		return errorf("look at it with loam disk check", "%s: %v", name, err)
	}
	err = s.Grow(blocks)
	closed := s.Close()
	switch {
	case errors.Is(err, linux.EOPNOTSUPP):
		return errorf("use resize2fs", "%s has no room for the descriptors of so many blocks", name)
	case errors.Is(err, linux.EINVAL):
		return errorf("choose a larger size", "%s is larger already", name)
	}
	if err = errors.Join(err, closed); err != nil {
		return errorf("", "%s: %v", name, err)
	}
	return nil
}

// examineSize returns the number of blocks of the file system in an image.
func examineSize(name string) (uint64, error) {
	d, summary, err := open(name, false)
	if err != nil {
		return 0, err
	}
	return summary.Blocks, d.Close()
}
