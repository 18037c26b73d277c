package machine

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"loam/abi/linux"
	"loam/block"
	"loam/block/ahci"
	"loam/block/nvme"
	"loam/block/virtioblk"
	"loam/driver/pci"
	"loam/driver/virtio"
	"loam/fs"
	"loam/kernel/device"
	"loam/unikernel/guest"
)

// The machine's disks are block devices with the names and numbers of Linux. They are raw: bytes at
// offsets, without a file system. A disk is opened when the program first opens its file.

// diskKind describes one kind of disk.
type diskKind struct {
	name          func(n int) string
	major, minors int // device numbers of Linux; each disk has minors minor numbers, for itself and its partitions
	open          func(n int, name string) (block.Device, error)
}

// letters returns a function that names disks by prefix and letter: n = 0 is a.
func letters(prefix string) func(n int) string {
	return func(n int) string { return prefix + string(rune('a'+n)) }
}

// diskKinds holds the kinds of disk by their names in guest.Config.
var diskKinds = map[string]diskKind{
	guest.DiskVirtio: {letters("vd"), 254, 16, openVirtio},
	guest.DiskNVMe:   {func(n int) string { return fmt.Sprintf("nvme%dn1", n) }, 259, 1, openNVMe},
	guest.DiskAHCI:   {letters("sd"), 8, 16, openAHCI},
}

// Devices implements rt.Platform. It creates the files of the disks in /dev.
func (platform) Devices(v *fs.View, c guest.Config) error {
	before := map[string]int{}
	for _, kind := range c.Disks {
		k, ok := diskKinds[kind]
		if !ok {
			return fmt.Errorf("a machine has no disk of kind %q", kind)
		}
		n := before[kind]
		before[kind]++
		number := fs.Device{Major: uint32(k.major), Minor: uint32(k.minors * n)}
		v.Tree.AddDevice(fs.BlockDevice, number, diskOpener(k, n))
		if err := v.Mknod(v.Root, "/dev/"+k.name(n), fs.BlockDevice|0o660, number); err != nil {
			return err
		}
	}
	return nil
}

// diskOpener returns a function that opens disk n of a kind. The device is opened once and shared by all
// handles. Errors: EIO, ENXIO, EROFS.
func diskOpener(k diskKind, n int) fs.OpenDevice {
	open := sync.OnceValues(func() (block.Device, error) { return k.open(n, k.name(n)) })
	return func(flags fs.Flags) (fs.Handle, error) {
		d, err := open()
		if err != nil {
			return nil, errnoOf(err)
		}
		if d.Info().ReadOnly && flags&linux.O_ACCMODE != linux.O_RDONLY {
			return nil, linux.EROFS
		}
		return disk{block.NewIO(d), int64(d.Info().LogicalSector)}, nil
	}
}

// openVirtio opens virtio disk n.
func openVirtio(n int, name string) (block.Device, error) {
	d, err := hardware().find(virtio.Block, n)
	if d == nil {
		return nil, errors.Join(err, linux.ENXIO)
	}
	return virtioblk.Open(d, virtioblk.Config{Name: name, Queues: runtime.NumCPU()})
}

// openNVMe opens the disk of NVMe controller n.
func openNVMe(n int, name string) (block.Device, error) {
	all := hardware().functions(nvme.Class)
	if n >= len(all) {
		return nil, errors.Join(hardware().why, linux.ENXIO)
	}
	return nvme.Open(device.Open(), all[n], nvme.Config{Name: name, Queues: runtime.NumCPU()})
}

// serialDisks opens all disks of all AHCI controllers together, once: they share interrupts.
var serialDisks = sync.OnceValues(func() (all []block.Device, err error) {
	err = hardware().why
	for _, f := range hardware().functions(ahci.Class) {
		first := len(all)
		disks, refused, problem := ahci.Open(device.Open(), f, func(n int) string { return letters("sd")(first + n) })
		for _, d := range disks {
			all = append(all, d)
		}
		err = errors.Join(err, problem, errors.Join(refused...))
	}
	return all, err
})

// openAHCI opens AHCI disk n, counted over all controllers.
func openAHCI(n int, _ string) (block.Device, error) {
	all, err := serialDisks()
	if n >= len(all) {
		return nil, errors.Join(err, linux.ENXIO)
	}
	return all[n], nil
}

// functions returns the functions of a class on the PCI bus.
func (d *devices) functions(class uint32) (all []*pci.Function) {
	if d.bus == nil {
		return nil
	}
	for _, f := range d.bus.Functions() {
		if f.Class == class {
			all = append(all, f)
		}
	}
	return all
}

// disk is an open disk as a file. Reads and writes may start and end at any byte.
type disk struct {
	*block.IO
	sector int64 // logical sector size in bytes
}

// partly serialises writes of partial sectors, which read the sector, change it and write it back.
var partly sync.Mutex

// blocks returns the range of whole sectors that covers n bytes at an offset.
func (d disk) blocks(n int, offset int64) (from int64, size int) {
	mask := d.sector - 1
	from = offset &^ mask
	return from, int((offset+int64(n)+mask)&^mask - from)
}

// ReadAt implements fs.Handle.
func (d disk) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= d.Size() {
		return 0, nil
	}
	from, size := d.blocks(len(p), offset)
	if from == offset && size == len(p) {
		n, err := d.IO.ReadAt(p, offset)
		return n, errnoOf(err)
	}
	b := make([]byte, size)
	n, err := d.IO.ReadAt(b, from)
	if n <= int(offset-from) {
		return 0, errnoOf(err)
	}
	return copy(p, b[offset-from:n]), nil
}

// WriteAt implements fs.Handle. Errors: EIO, ENOSPC at the end of the disk.
func (d disk) WriteAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if offset >= d.Size() {
		return 0, linux.ENOSPC
	}
	p = p[:min(int64(len(p)), d.Size()-offset)]
	from, size := d.blocks(len(p), offset)
	if from == offset && size == len(p) {
		n, err := d.IO.WriteAt(p, offset)
		return n, errnoOf(err)
	}
	partly.Lock()
	defer partly.Unlock()
	b := make([]byte, size)
	if _, err := d.IO.ReadAt(b, from); err != nil {
		return 0, errnoOf(err)
	}
	copy(b[offset-from:], p)
	if _, err := d.IO.WriteAt(b, from); err != nil {
		return 0, errnoOf(err)
	}
	return len(p), nil
}

// Append implements fs.Handle. A disk does not grow, so it fails with ENOSPC.
func (d disk) Append([]byte) (int, int64, error) { return 0, d.Size(), linux.ENOSPC }

// Sync implements fs.Handle.
func (d disk) Sync() error { return errnoOf(d.Flush()) }

// Close implements fs.Handle. The disk stays open for its other handles.
func (d disk) Close() error { return nil }

// errnoOf converts a driver's error to an errno. The end of a disk is not an error.
func errnoOf(err error) error {
	var errno linux.Errno
	switch {
	case err == nil || err == io.EOF:
		return nil
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, block.ErrReadOnly):
		return linux.EROFS
	case errors.Is(err, block.ErrNoSpace):
		return linux.ENOSPC
	}
	return linux.EIO
}
