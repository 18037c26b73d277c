package rt

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"syscall"

	"loam/abi/linux"
	"loam/block"
	"loam/fs"
	"loam/fs/devpts"
	"loam/fs/memfs"
	"loam/fs/pseudo"
	"loam/unikernel/guest"
)

// The file tree with disks in it. If a disk or a folder of the host is the root, /dev and /run are in memory, as on other
// Linux systems, and so are the files of /etc that Loam writes: the disk or the folder keeps its own.

// mountDisk mounts a disk at its folder, which it creates if needed.
func mountDisk(v *fs.View, d *disk) error {
	if err := d.mount(diskReports); err != nil {
		return err
	}
	if err := mountFolder(v, d.system, guest.Mount{Path: d.Path, Writable: !d.ReadOnly}); err != nil || !d.Fresh {
		return err
	}
	return giveTo(v, d.Path)
}

// giveTo makes the program's user the owner of a folder.
func giveTo(v *fs.View, name string) error {
	place, err := v.LookupDir(v.Root, name)
	if err != nil {
		return err
	}
	owner := fs.Change{Fields: fs.SetOwner | fs.SetGroup, UID: uint32(syscall.Getuid()), GID: uint32(syscall.Getgid())}
	return v.Change(place, owner)
}

// disksOf describes disks for /proc/partitions, /proc/diskstats and /sys/block.
func disksOf(all []*disk) (list []pseudo.Disk) {
	for _, d := range all {
		list = append(list, pseudo.Disk{Name: d.device, Number: d.number, State: func() (pseudo.DiskState, bool) {
			b, err := d.open()
			if err != nil {
				return pseudo.DiskState{}, false
			}
			i := b.Info()
			return pseudo.DiskState{Size: b.Size(), Logical: i.LogicalSector, Physical: i.PhysicalSector, ReadOnly: d.ReadOnly || i.ReadOnly}, true
		}, Counts: d.counts})
	}
	return list
}

// counts returns the counts of the disk. The order of the fields is that of Documentation/admin-guide/iostats.rst of Linux.
// Requests are not merged. As on Linux, WriteZeroes counts as a write.
func (d *disk) counts() pseudo.DiskCounts {
	var n block.Stats
	if b := d.opened.Load(); b != nil {
		n = (*b).Stats()
	}
	const sector = 512 // unit of the kernel's counts, in bytes
	ms := func(ops ...block.Op) (sum int64) {
		for _, op := range ops {
			sum += n.Times[op].Milliseconds()
		}
		return sum
	}
	written := n.WriteBytes + n.Zeroed
	return pseudo.DiskCounts{Read: int64(n.ReadBytes), Written: int64(written), Fields: fmt.Sprintf("%d 0 %d %d %d 0 %d %d %d %d %d %d 0 %d %d %d %d",
		n.Done[block.Read], n.ReadBytes/sector, ms(block.Read),
		n.Done[block.Write]+n.Done[block.WriteZeroes], written/sector, ms(block.Write, block.WriteZeroes),
		n.InFlight, n.Busy.Milliseconds(), ms(block.Read, block.Write, block.WriteZeroes, block.Discard, block.Flush),
		n.Done[block.Discard], n.Discarded/sector, ms(block.Discard), n.Done[block.Flush], ms(block.Flush))}
}

// diskMounts returns the mounted disks for /proc/mounts.
func diskMounts() (list []pseudo.Mount) {
	for _, d := range disks {
		if d.system == nil {
			continue
		}
		list = append(list, pseudo.Mount{
			Path: d.Path, Writable: !d.ReadOnly, Source: "/dev/" + d.device, Kind: "ext4",
			Frozen: func() bool { return d.system.ReadOnly() != "" },
		})
	}
	return list
}

// memoryFolders are in memory if the root is mounted.
var memoryFolders = []string{"/dev", "/run"}

// mountPoints must exist if the root is mounted.
var mountPoints = []struct {
	path string
	mode fs.Mode
}{{"/dev", 0o755}, {"/proc", 0o555}, {"/sys", 0o555}, {"/run", 0o755}, {"/tmp", 0o777 | fs.Sticky}, {"/etc", 0o755}}

// mountedRoot is a root file system on a disk, or in a folder of the host.
type mountedRoot struct {
	system fs.FileSystem
	label  string // name for messages
}

// mountRoot mounts the root file system, or returns nil if the root is in memory.
func mountRoot(p Platform, c guest.Config) (*mountedRoot, error) {
	for _, d := range disks {
		if d.Path == "/" {
			if err := d.mount(diskReports); err != nil {
				return nil, err
			}
			return &mountedRoot{d.system, d.label()}, nil
		}
	}
	for _, s := range c.Shared {
		if s.Path == "/" {
			const label = "the root folder"
			system, err := connectShared(p, c, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", label, err)
			}
			return &mountedRoot{system, label}, nil
		}
	}
	return nil, nil
}

// newMountedTree is newTree with a mounted root.
func newMountedTree(p Platform, c guest.Config, root mountedRoot, terminals *devpts.FileSystem) (*fs.Tree, error) {
	v := fs.NewView(fs.NewTree(root.system))
	v.Tree.SetMemory(newMemory(memfs.Config{})) // a mounted root has no files that can be sealed (memfd_create)
	v.Umask = 0
	for _, f := range mountPoints {
		err := makeFolders(v, f.path, f.mode)
		if cannotWrite(err) {
			return nil, fmt.Errorf("%s has no folder %s, and cannot be written", root.label, f.path)
		}
		if err == nil {
			_, err = v.LookupDir(v.Root, f.path) // a file, or a symbolic link that leads nowhere, is no folder
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	for _, name := range memoryFolders {
		if err := mountFolder(v, memfs.New(memfs.Config{Files: mostFiles() / 2, Source: &contents}), guest.Mount{Path: name, Writable: true}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	// Debian's packages expect /run/lock, the target of the link /var/lock. The image's own /run is hidden.
	if err := errors.Join(mountShm(v), makeFolders(v, "/dev/pts", 0o755), makeFolders(v, "/run/lock", 0o777|fs.Sticky)); err != nil {
		return nil, err
	}
	if err := errors.Join(pseudo.Devices(v), addDevices(v, disks)); err != nil {
		return nil, err
	}
	if err := coverEtc(v); err != nil {
		return nil, err
	}
	if err := mountAll(v, p, c); err != nil {
		return nil, err
	}
	executable, _ := p.Executable(c)
	about = aboutProcess(p, c, executable)
	return v.Tree, mountGenerated(v, about, terminals)
}

// cannotWrite reports whether an error means that the program cannot write a file system: it is read-only, or a folder of another user
// of the host.
func cannotWrite(err error) bool {
	return errors.Is(err, linux.EROFS) || errors.Is(err, linux.EACCES) || errors.Is(err, linux.EPERM)
}

// coverEtc mounts files in memory over those of /etc that Loam writes. A file that is missing is created, unless the
// root cannot be written.
func coverEtc(v *fs.View) error {
	system := memfs.New(memfs.Config{Source: &contents})
	for _, name := range [...]string{"hosts", "hostname", "resolv.conf"} {
		at, err := v.Lookup(v.Root, path.Join("/etc", name), true)
		if errors.Is(err, iofs.ErrNotExist) {
			if at, err = createFile(v, path.Join("/etc", name)); err != nil {
				continue // skipped: the root cannot be written
			}
		}
		if err != nil {
			return err
		}
		file, err := system.Root().Make(name, fs.Regular|0o644, fs.Owner{}, fs.Device{})
		if err == nil {
			err = v.Tree.MountFile(system, file, at, false)
		}
		if err != nil {
			return fmt.Errorf("/etc/%s: %w", name, err)
		}
	}
	return nil
}

// createFile creates an empty file. If the name is a symbolic link into a folder that is missing, such as
// /run/systemd/resolve, the folder is created.
func createFile(v *fs.View, name string) (fs.Place, error) {
	f, err := v.Open(v.Root, name, fs.WriteOnly|fs.Create, 0o644)
	if errors.Is(err, iofs.ErrNotExist) {
		target, e := v.Readlink(v.Root, name)
		if e != nil {
			return fs.Place{}, err
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		if err := makeFolders(v, path.Dir(path.Clean(target)), 0o755); err != nil {
			return fs.Place{}, err
		}
		f, err = v.Open(v.Root, name, fs.WriteOnly|fs.Create, 0o644)
	}
	if err != nil {
		return fs.Place{}, err
	}
	f.Close()
	return v.Lookup(v.Root, name, true)
}
