package rt

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/block"
	"loam/block/snapshot"
	"loam/fs"
	"loam/fs/ext4"
	"loam/unikernel/guest"
)

// The disks: block devices with the names and numbers of Linux (blockfile.go), and the file systems on them. A disk is
// opened when it is mounted, or when the program first opens its device.

// diskKind describes the names of one kind of disk.
type diskKind struct {
	name          func(n int) string
	major, minors int // device numbers of Linux; each disk has minors minor numbers, for itself and its partitions
}

// letters returns a function that names disks by prefix and letter: n = 0 is a.
func letters(prefix string) func(n int) string {
	return func(n int) string { return prefix + string(rune('a'+n)) }
}

// diskKinds holds the kinds of disk by their names in guest.Disk.
var diskKinds = map[string]diskKind{
	guest.DiskVirtio: {letters("vd"), 254, 16},
	guest.DiskNVMe:   {func(n int) string { return fmt.Sprintf("nvme%dn1", n) }, 259, 1},
	guest.DiskAHCI:   {letters("sd"), 8, 16},
}

// disk is a disk of the program.
type disk struct {
	guest.Disk
	device string // name of the device file in /dev
	number fs.Device
	open   func() (block.Device, error) // opens the device; called at most once
	opened atomic.Pointer[block.Device] // the device after it was opened
	system *ext4.FileSystem             // file system on the disk; nil: the disk is not mounted
}

// disks are the program's disks. They are set before the program starts.
var disks []*disk

// newDisks describes the disks of the configuration.
func newDisks(p Platform, c guest.Config) (all []*disk, err error) {
	before := map[string]int{}
	for _, g := range c.Disks {
		kind, ok := diskKinds[g.Kind]
		if !ok {
			return nil, fmt.Errorf("there is no disk of kind %q", g.Kind)
		}
		n := before[g.Kind]
		before[g.Kind]++
		d := &disk{Disk: g, device: kind.name(n), number: fs.Device{Major: uint32(kind.major), Minor: uint32(kind.minors * n)}}
		d.open = sync.OnceValues(func() (block.Device, error) {
			number := n
			if g.FD != 0 {
				number = g.FD
			}
			b, err := p.Disk(g.Kind, number, d.device)
			if err == nil && g.Snapshot {
				total, _ := memory()
				b = snapshot.New(b, int64(total/4))
			}
			if err == nil {
				d.opened.Store(&b)
			}
			return b, err
		})
		all = append(all, d)
	}
	return all, nil
}

// addDevices creates the files of the disks in /dev.
func addDevices(v *fs.View, all []*disk) error {
	for _, d := range all {
		v.Tree.AddDevice(fs.BlockDevice, d.number, d.openFile)
		if err := v.Mknod(v.Root, "/dev/"+d.device, fs.BlockDevice|0o660, d.number); err != nil {
			return err
		}
	}
	return nil
}

// openFile opens the device as a file. A mounted disk can be opened for writing, as resize2fs(8) does, but writes return
// EBUSY. Errors: EIO, ENXIO, EROFS, EBUSY for a mounted disk with O_EXCL.
func (d *disk) openFile(flags fs.Flags) (fs.Handle, error) {
	writes := flags&linux.O_ACCMODE != linux.O_RDONLY
	if flags&fs.Exclusive != 0 && d.system != nil {
		return nil, linux.EBUSY
	}
	b, err := d.open()
	if err != nil {
		return nil, errnoOf(err)
	}
	if writes && (d.ReadOnly || b.Info().ReadOnly) {
		return nil, linux.EROFS
	}
	return blockFile{block.NewIO(b), int64(b.Info().LogicalSector), d.system != nil}, nil
}

// mostCache is the largest cache of a file system in bytes; at most an eighth of the memory is used.
const mostCache = 64 << 20

// mount opens the file system on the disk.
func (d *disk) mount(to *reports) error {
	b, err := d.open()
	if err == nil {
		total, _ := memory()
		d.system, err = ext4.Open(b, ext4.Config{
			ReadOnly: d.ReadOnly, Number: d.number, CacheBytes: int(min(mostCache, total/8)),
			Report: func(text string) { to.report(d.label() + ": " + text) },
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.label(), err)
	}
	if why := d.system.ReadOnly(); why != "" && !d.ReadOnly {
		return fmt.Errorf("%s cannot be written: %s; mount it with :ro", d.label(), why)
	}
	return nil
}

// label returns the name of the disk for messages.
func (d *disk) label() string {
	if d.Name != "" {
		return d.Name
	}
	return "/dev/" + d.device
}

// unmounting ensures that unmount closes the file systems only once.
var unmounting sync.Once

// unmount makes all file systems on disks clean. The program's open files fail from then on.
func unmount() {
	unmounting.Do(func() {
		for _, d := range disks {
			if d.system == nil {
				continue
			}
			if err := d.system.Close(); err != nil && !errors.Is(err, linux.EIO) { // an EIO was reported when it occurred
				diskReports.report(fmt.Sprintf("%s: it was not unmounted cleanly: %v", d.label(), err))
			}
		}
		if diskReports != nil {
			diskReports.close()
		}
	})
}
