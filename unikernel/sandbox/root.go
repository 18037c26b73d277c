package sandbox

import (
	"golang.org/x/sys/unix"
)

// emptyRoot gives the calling process (the stage), which is in a mount namespace of its own, an empty read-only root
// folder. Descriptors that are open keep their files.
//
// The new file system is mounted over /proc, because that folder exists everywhere. pivot_root(2) then makes it the
// root and puts the old root in the same place ("." twice). This way no folder has to be created.
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

// openProc opens a proc file system that shows the program's process. Later the program's maps are read from it. In a
// PID namespace it is a new file system that is not mounted anywhere. It returns -1 if there is none.
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
