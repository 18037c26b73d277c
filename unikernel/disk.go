package unikernel

import (
	"errors"
	"io/fs"
	"os"
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

// addDisk has QEMU make a disk of an image.
func (m *monitor) addDisk(model, name string) error {
	f, writable, err := openDiskImage(name)
	if err != nil {
		return err
	}
	drive := "driver=raw,node-name=disk,file.driver=file,file.filename=" + m.inherit(f)
	if !writable {
		drive += ",read-only=on"
	}
	m.args = append(m.args, "-blockdev", drive, "-device", virtio("blk", model)+",drive=disk")
	return nil
}
