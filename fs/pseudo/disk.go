package pseudo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"loam/fs"
)

// The files about disks: /proc/partitions, /proc/diskstats, /proc/devices, and directories in /sys/block. As in Linux's older layout (CONFIG_SYSFS_DEPRECATED), a disk has its
// directory there, and not below the directory of a bus.

// Disk is a disk of the machine.
type Disk struct {
	Name   string // vda
	Number fs.Device
	// State returns what is known after the disk was opened, and false if it cannot be opened.
	State func() (DiskState, bool)
	// Counts returns zeros for a disk that is not open. It does not open the disk.
	Counts func() DiskCounts
}

// DiskCounts are counts of a disk since the start.
type DiskCounts struct {
	Read, Written int64  // numbers of bytes
	Fields        string // the fields that /proc/diskstats and the file stat of a disk have in common
}

// DiskState describes an open disk.
type DiskState struct {
	Size              int64 // in bytes
	Logical, Physical int   // sizes of sectors in bytes
	ReadOnly          bool
}

// sectorSize is the unit of the kernel's counts of sectors, in bytes.
const sectorSize = 512

// diskStats returns the text of /proc/diskstats.
func (p *Process) diskStats() string {
	var b strings.Builder
	for _, d := range p.Disks {
		fmt.Fprintf(&b, "%4d %7d %s %s\n", d.Number.Major, d.Number.Minor, d.Name, d.Counts().Fields)
	}
	return b.String()
}

// partitions returns the text of /proc/partitions. The program has no partitions, only whole disks.
func (p *Process) partitions() string {
	var b strings.Builder
	for _, d := range p.Disks {
		if s, ok := d.State(); ok {
			fmt.Fprintf(&b, "%4d  %7d %10d %s\n", d.Number.Major, d.Number.Minor, s.Size/1024, d.Name)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "major minor  #blocks  name\n\n" + b.String()
}

// drivers returns the text of /proc/devices: the major numbers of the devices that Devices makes, of pseudo-terminals, and of the disks.
func (p *Process) drivers() string {
	blocks := map[uint32]string{}
	for _, d := range p.Disks {
		name := "blkext" // the number of a disk of NVMe is one of an extended range
		switch {
		case strings.HasPrefix(d.Name, "vd"):
			name = "virtblk"
		case strings.HasPrefix(d.Name, "sd"):
			name = "sd"
		}
		blocks[d.Number.Major] = name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Character devices:\n%3d mem\n%3d /dev/tty\n%3[2]d /dev/console\n%3[2]d /dev/ptmx\n136 pts\n\nBlock devices:\n", memory, terminal)
	for _, major := range slices.Sorted(maps.Keys(blocks)) {
		fmt.Fprintf(&b, "%3d %s\n", major, blocks[major])
	}
	return b.String()
}

// transferred returns the numbers of KiB that were read from disks and written to them.
func (p *Process) transferred() (read, written int64) {
	for _, d := range p.Disks {
		n := d.Counts()
		read, written = read+n.Read/1024, written+n.Written/1024
	}
	return read, written
}

// disks adds the directories of the disks to /sys.
func (p *Process) disks(f *FileSystem) {
	if len(p.Disks) == 0 {
		for _, path := range [...]string{"block", "class/block", "dev/block"} {
			f.Folder(path)
		}
	}
	for _, d := range p.Disks {
		dir, number := "block/"+d.Name+"/", fmt.Sprintf("%d:%d", d.Number.Major, d.Number.Minor)
		for _, path := range [...]string{"class/block/" + d.Name, "dev/block/" + number} {
			f.Link(path, func() string { return "../../block/" + d.Name })
		}
		f.Fixed(dir+"dev", number+"\n")
		f.Fixed(dir+"uevent", fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=%s\nDEVTYPE=disk\n", d.Number.Major, d.Number.Minor, d.Name))
		f.Fixed(dir+"removable", "0\n")
		f.Folder(dir + "holders")
		f.Folder(dir + "slaves")
		f.File(dir+"stat", func() string { return d.Counts().Fields + "\n" })
		for path, value := range map[string]func(s DiskState) int64{
			"size":                      func(s DiskState) int64 { return s.Size / sectorSize },
			"ro":                        func(s DiskState) int64 { return number01(s.ReadOnly) },
			"queue/logical_block_size":  func(s DiskState) int64 { return int64(s.Logical) },
			"queue/physical_block_size": func(s DiskState) int64 { return int64(s.Physical) },
			"queue/hw_sector_size":      func(s DiskState) int64 { return int64(s.Logical) },
		} {
			f.File(dir+path, func() string {
				s, _ := d.State()
				return fmt.Sprintln(value(s))
			})
		}
	}
}

func number01(on bool) int64 {
	if on {
		return 1
	}
	return 0
}
