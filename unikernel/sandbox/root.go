package sandbox

import (
	"golang.org/x/sys/unix"
)

// emptyRoot gives the stage, which has a mount namespace of its own, a root without files that
// cannot be written. Descriptors that are open keep their files.
//
// The file system is mounted over /proc, a folder that is everywhere, and becomes the root by
// pivot_root(2) with the old root on the same place ("." twice), which needs no folder to be made.
func emptyRoot() error {
	const place = "/proc"
	for _, step := range []func() error{
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error {
			return unix.Mount("none", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,nr_inodes=1,mode=555")
		},
		func() error { return unix.Chdir(place) },
		func() error { return unix.PivotRoot(".", ".") },
		func() error { return unix.Unmount(".", unix.MNT_DETACH) },
		func() error { return unix.Chdir("/") },
		func() error {
			return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// openProc opens a proc file system that shows the program's process, from which the stage reads
// the program's maps; -1: there is none. In a PID namespace it is a new one, mounted nowhere.
func openProc(namespace bool) int {
	if !namespace {
		fd, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1
		}
		return fd
	}
	context, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return -1
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}
