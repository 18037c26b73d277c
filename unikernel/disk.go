package unikernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// openDiskImage opens the image of a disk, to be written if that may be, and says
// whether it is.
func openDiskImage(name string) (f *os.File, writable bool, err error) {
	f, err = os.OpenFile(name, os.O_RDWR, 0)
	writable = err == nil
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		f, err = os.Open(name)
	}
	const make = "make one (truncate -s 64M FILE) and name it"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, errorf(make, "--disk: there is no %s", name)
	case err != nil:
		return nil, false, errorf("name a file that can be read", "--disk: %v", err)
	}
	const sector = 512
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() == 0 || st.Size()%sector != 0 {
		f.Close()
		return nil, false, errorf(make, "--disk: %s is no image of a disk: a file, of a multiple of %d bytes", name, sector)
	}
	return f, writable, nil
}

// checkDisks refuses what cannot be disks of a machine.
func checkDisks(names []string) error {
	if len(names) > maxDisks {
		return errorf(fmt.Sprintf("give it up to %d", maxDisks), "a machine cannot have %d disks", len(names))
	}
	var images []os.FileInfo
	for _, name := range names {
		f, _, err := openDiskImage(name)
		if err != nil {
			return err
		}
		image, err := f.Stat()
		f.Close()
		same := func(other os.FileInfo) bool { return os.SameFile(image, other) }
		if err != nil || slices.ContainsFunc(images, same) {
			return errorf("copy it", "--disk: %s cannot be two disks", name)
		}
		images = append(images, image)
	}
	return nil
}

// addDisks has QEMU make disks of images.
func (m *monitor) addDisks(model string, names []string) error {
	for i, name := range names {
		f, writable, err := openDiskImage(name)
		if err != nil {
			return err
		}
		drive := fmt.Sprintf("driver=raw,node-name=disk%d,file.driver=file,file.filename=%s", i, m.inherit(f))
		if !writable {
			drive += ",read-only=on"
		}
		m.args = append(m.args, "-blockdev", drive, "-device", fmt.Sprintf("%s,drive=disk%d", virtio("blk", model), i))
	}
	return nil
}
