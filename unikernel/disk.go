package unikernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"loam/unikernel/guest"
)

// openDiskImage opens a disk image, for writing if permitted. writable reports whether it is.
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

// mostAHCI is the number of ports of QEMU's AHCI controller.
const mostAHCI = 6

// diskKind splits KIND:FILE into its parts; FILE alone is a virtio disk.
func diskKind(name string) (kind, file string) {
	for _, kind := range []string{guest.DiskVirtio, guest.DiskNVMe, guest.DiskAHCI} {
		if file, ok := strings.CutPrefix(name, kind+":"); ok {
			return kind, file
		}
	}
	return guest.DiskVirtio, name
}

// diskKinds returns the kinds of all disks.
func diskKinds(names []string) (kinds []string) {
	for _, name := range names {
		kind, _ := diskKind(name)
		kinds = append(kinds, kind)
	}
	return kinds
}

// checkKinds returns an error for kinds of disks that a machine model does not support.
func checkKinds(model string, kinds []string) error {
	serial := 0
	for _, kind := range kinds {
		if kind != guest.DiskVirtio && model == "microvm" {
			return errorf("use --machine q35", "--disk: microvm has no bus for a disk of kind %s", kind)
		}
		if kind == guest.DiskAHCI {
			serial++
		}
	}
	if serial > mostAHCI {
		return errorf(fmt.Sprintf("give it up to %d, and others as virtio or nvme", mostAHCI), "a machine cannot have %d disks of kind ahci", serial)
	}
	return nil
}

// checkDisks returns an error if the disks are not possible on a machine model.
func checkDisks(model string, names []string) error {
	if err := checkKinds(model, diskKinds(names)); err != nil {
		return err
	}
	if len(names) > maxDisks {
		return errorf(fmt.Sprintf("give it up to %d", maxDisks), "a machine cannot have %d disks", len(names))
	}
	var images []os.FileInfo
	for _, name := range names {
		kind, name := diskKind(name)
		f, writable, err := openDiskImage(name)
		if err != nil {
			return err
		}
		if !writable && kind == guest.DiskAHCI {
			f.Close()
			return errorf("leave out ahci:", "--disk: %s cannot be written to, and QEMU has no such disk of kind ahci", name)
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

// addDisks adds the disks to QEMU's arguments.
func (m *monitor) addDisks(model string, names []string) error {
	serial := 0
	for i, name := range names {
		kind, name := diskKind(name)
		f, writable, err := openDiskImage(name)
		if err != nil {
			return err
		}
		drive := fmt.Sprintf("driver=raw,node-name=disk%d,file.driver=file,file.filename=%s", i, m.share(f))
		if !writable {
			drive += ",read-only=on"
		}
		device := virtio("blk", model)
		switch kind {
		case guest.DiskNVMe:
			device = fmt.Sprintf("nvme,serial=disk%d", i)
		case guest.DiskAHCI:
			if serial == 0 {
				m.args = append(m.args, "-device", "ich9-ahci,id=serial")
			}
			device = fmt.Sprintf("ide-hd,bus=serial.%d", serial)
			serial++
		}
		m.args = append(m.args, "-blockdev", drive, "-device", fmt.Sprintf("%s,drive=disk%d", device, i))
	}
	return nil
}
