package unikernel

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"loam/fs/ext4/disk"
	"loam/fs/ext4/format"
	"loam/fs/imagefile"
	"loam/unikernel/guest"
)

// Disk images of a guest. An image is opened, locked and examined before the program is built, so that problems are reported
// at once. The guest gets the open file, and never its name: in a process, a descriptor on which only pread, pwrite and
// fdatasync are allowed; in a machine, a drive of QEMU.

// Disk describes a disk image for a guest.
type Disk struct {
	Kind     string // "virtio", "nvme" or "ahci": the hardware of a machine
	File     string // path of the image
	Path     string // mount point of its ext4 file system; "/": the root of a Linux program; empty: a block device only
	ReadOnly bool
	Snapshot bool   // writes stay in the guest's memory
	Size     uint64 // size of an image to create; 0: the image must exist
}

// ParseDisk parses [KIND:]FILE[:/PATH][:ro|:snapshot].
func ParseDisk(text string) (Disk, error) {
	d := Disk{Kind: guest.DiskVirtio, File: text}
	for _, kind := range []string{guest.DiskVirtio, guest.DiskNVMe, guest.DiskAHCI} {
		if file, ok := strings.CutPrefix(text, kind+":"); ok {
			d.Kind, d.File = kind, file
		}
	}
	for {
		if file, ok := strings.CutSuffix(d.File, ":ro"); ok {
			d.File, d.ReadOnly = file, true
		} else if file, ok := strings.CutSuffix(d.File, ":snapshot"); ok {
			d.File, d.Snapshot = file, true
		} else {
			break
		}
	}
	if i := strings.LastIndex(d.File, ":/"); i >= 0 {
		d.File, d.Path = d.File[:i], path.Clean(d.File[i+1:])
	}
	switch {
	case d.File == "":
		return d, errorf("write --disk FILE:/DIR", "--disk %s names no file", text)
	case d.Path == "/":
		return d, errorf("use --root "+d.File, "--disk %s would be the root", text)
	case d.ReadOnly && d.Snapshot:
		return d, errorf("choose one", "--disk %s: ro and snapshot exclude each other", text)
	}
	return d, nil
}

// flag returns the user's --disk option for the disk, for messages.
func (d *Disk) flag() string {
	if d.Path == "/" {
		return "--root"
	}
	return "--disk"
}

// drive is an open disk image.
type drive struct {
	Disk
	file  *os.File
	fresh bool // openDisk has just created the image
}

// mostAHCI is the number of disks that QEMU's AHCI controller can have.
const mostAHCI = 6

// openDisks opens the disk images of a guest. Nothing stays open if there is an error.
func openDisks(o *Options) (images []*drive, err error) {
	if err := checkKinds(o); err != nil {
		return nil, err
	}
	if len(o.Disks) > maxDisks {
		return nil, errorf(fmt.Sprintf("give it up to %d", maxDisks), "a program cannot have %d disks", len(o.Disks))
	}
	defer func() {
		if err != nil {
			closeImages(images)
			images = nil
		}
	}()
	for _, d := range o.Disks {
		if err := checkPlace(d, images); err != nil {
			return images, err
		}
		i, err := openDisk(d)
		if err != nil {
			return images, err
		}
		images = append(images, i)
	}
	return images, nil
}

func closeImages(images []*drive) {
	for _, i := range images {
		i.file.Close()
	}
}

// checkPlace returns an error if an earlier disk has the same image or mount point.
func checkPlace(d Disk, earlier []*drive) error {
	st, err := os.Stat(d.File)
	for _, i := range earlier {
		if other, serr := i.file.Stat(); err == nil && serr == nil && os.SameFile(st, other) {
			return errorf("copy it", "--disk: %s cannot be two disks", d.File)
		}
		if d.Path != "" && d.Path == i.Path {
			return errorf("give one another place", "--disk: %s and %s are both at %s", i.File, d.File, d.Path)
		}
	}
	return nil
}

// checkKinds returns an error for kinds of disks that the platform does not have.
func checkKinds(o *Options) error {
	serial := 0
	for _, d := range o.Disks {
		kind := cmp.Or(d.Kind, guest.DiskVirtio)
		switch {
		case kind != guest.DiskVirtio && o.Target.Platform != Machine:
			return errorf("leave out "+kind+":, or use --platform vm", "--disk: a process has no disk of kind %s", kind)
		case kind != guest.DiskVirtio && o.Machine.Model == "microvm":
			return errorf("use --machine q35", "--disk: microvm has no bus for a disk of kind %s", kind)
		case kind == guest.DiskAHCI:
			serial++
		}
	}
	if serial > mostAHCI {
		return errorf(fmt.Sprintf("give it up to %d, and others as virtio or nvme", mostAHCI), "a machine cannot have %d disks of kind ahci", serial)
	}
	return nil
}

// openDisk opens, locks and examines an image. An image that does not exist is created if it has a size.
func openDisk(d Disk) (*drive, error) {
	d.Kind = cmp.Or(d.Kind, guest.DiskVirtio)
	i := &drive{Disk: d}
	flags := os.O_RDWR
	if d.ReadOnly || d.Snapshot {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(d.File, flags, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.Size > 0:
		f, err = createImage(d)
		i.fresh = err == nil
	case unwritable(err) && d.Path == "":
		i.ReadOnly = true
		f, err = os.Open(d.File)
	case unwritable(err):
		return nil, errorf("append :ro to only read it, or :snapshot to keep changes in memory", "%s: %s cannot be written: %v", d.flag(), d.File, errors.Unwrap(err))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errorf("create it (loam disk create --size 1G FILE), or give its size (--disk-size 1G)", "%s: there is no %s", d.flag(), d.File)
	case err != nil:
		var own *imagefile.Error
		if errors.As(err, &own) {
			return nil, errorf(own.Next, "%s: %s", d.flag(), own.What)
		}
		return nil, errorf("name a file that can be read", "%s: %v", d.flag(), err)
	}
	i.file = f
	if err := i.check(); err != nil {
		f.Close()
		return nil, err
	}
	return i, nil
}

// createImage creates the image of a disk, with an ext4 file system if the disk is mounted.
func createImage(d Disk) (*os.File, error) {
	switch {
	case d.ReadOnly || d.Snapshot:
		return nil, &imagefile.Error{What: "there is no " + d.File + ", and a new image would be only read", Next: "create it (loam disk create)"}
	case d.Path == "":
		return imagefile.CreateEmpty(d.File, int64(d.Size))
	}
	return imagefile.Create(d.File, int64(d.Size), format.Config{})
}

// unwritable reports whether an error means that a file can be read but not written.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ETXTBSY)
}

// check returns an error if the image cannot be used.
func (i *drive) check() error {
	const sector = 512
	st, err := i.file.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() == 0 || st.Size()%sector != 0 {
		return errorf("make one (loam disk create --size 1G FILE) and name it", "%s: %s is no image of a disk: a file, of a multiple of %d bytes", i.flag(), i.File, sector)
	}
	if i.ReadOnly && i.Kind == guest.DiskAHCI || i.Snapshot && i.Kind == guest.DiskAHCI {
		return errorf("leave out ahci:", "--disk: %s is only read, and QEMU has no such disk of kind ahci", i.File)
	}
	if err := imagefile.Lock(i.file, i.ReadOnly || i.Snapshot); err != nil {
		return errorf("end the program that uses it, or copy it", "%s: %s is in use: %v", i.flag(), i.File, err)
	}
	if i.Path == "" {
		return nil
	}
	s, err := disk.Examine(i.file, st.Size())
	switch {
	case errors.Is(err, disk.ErrNone):
		return errorf("make one (loam disk create --size 1G FILE), or leave out "+i.Path+" for a disk without a file system", "%s: %s has no ext4 file system", i.flag(), i.File)
	case err != nil:
		return errorf("look at it with loam disk check", "%s: %s: %v", i.flag(), i.File, err)
	case s.ReadOnly != "" && !i.ReadOnly:
		return errorf("append :ro to only read it", "%s: %s cannot be written: %s", i.flag(), i.File, s.ReadOnly)
	}
	return nil
}

// describe returns the disk as the guest sees it.
func (i *drive) describe() guest.Disk {
	return guest.Disk{Kind: i.Kind, Name: i.File, Path: i.Path, ReadOnly: i.ReadOnly, Snapshot: i.Snapshot, Fresh: i.fresh}
}

// sizes returns the sizes of disk images in bytes.
func sizes(images []*drive) ([]int64, error) {
	all := make([]int64, len(images))
	for n, i := range images {
		st, err := i.file.Stat()
		if err != nil {
			return nil, err
		}
		all[n] = st.Size()
	}
	return all, nil
}

// giveDisks gives a process its disk images. Their descriptors are consecutive, because the filter of
// the process's system calls allows a range of descriptors.
func (n *network) giveDisks() {
	for _, i := range n.disks {
		d := i.describe()
		d.FD = n.give(i.file)
		n.config.Disks = append(n.config.Disks, d)
	}
	n.disks = nil
}

// addDisks adds the disks to QEMU's arguments.
func (m *monitor) addDisks(model string, images []*drive) {
	serial := 0
	for n, i := range images {
		blockdev := fmt.Sprintf("driver=raw,node-name=disk%d,file.driver=file,file.filename=%s", n, m.share(i.file))
		if i.ReadOnly || i.Snapshot {
			blockdev += ",read-only=on"
		}
		// Without these options, QEMU stops the machine when the host's disk is full, and the program would hang.
		const reports = ",werror=report,rerror=report"
		device := virtio("blk", model) + reports
		switch i.Kind {
		case guest.DiskNVMe:
			device = fmt.Sprintf("nvme,serial=disk%d", n)
		case guest.DiskAHCI:
			if serial == 0 {
				m.args = append(m.args, "-device", "ich9-ahci,id=serial")
			}
			device = fmt.Sprintf("ide-hd,bus=serial.%d", serial) + reports
			serial++
		}
		m.args = append(m.args, "-blockdev", blockdev, "-device", fmt.Sprintf("%s,drive=disk%d", device, n))
	}
}

// withRootImage adds a disk for a root that is an ext4 image.
func (o *Options) withRootImage() {
	if o.Root == "" || o.RootShared || !isImage(o.Root) {
		return
	}
	root := Disk{File: o.Root, Path: "/", ReadOnly: o.RootReadOnly, Snapshot: o.RootSnapshot}
	o.Disks = slices.Insert(slices.Clone(o.Disks), 0, root)
}

// isImage reports whether a file holds an ext4 file system.
func isImage(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	_, err = disk.Examine(f, st.Size())
	return !errors.Is(err, disk.ErrNone)
}
