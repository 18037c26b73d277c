package children

import (
	"syscall"
	_ "unsafe" // for go:linkname

	"loam/abi/linux"
	"loam/task/spawn"
)

// spawnProgram is called by the function forkExec of package syscall, as Loam has edited it (unikernel/overlay).
//
//go:linkname spawnProgram syscall.loamSpawn
var spawnProgram func(argv0 string, argv []string, attr *syscall.ProcAttr, files *syscall.Rlimit) (pid int, err error)

// start starts a program with attributes that syscall.forkExec has checked. files is the limit of open files that the
// program had before package os raised it; nil: it was not raised.
func start(argv0 string, argv []string, attr *syscall.ProcAttr, files *syscall.Rlimit) (pid int, err error) {
	q := spawn.Attributes{Path: argv0, Args: argv, Env: attr.Env, Dir: attr.Dir}
	if files != nil {
		q.OpenFiles = &linux.Rlimit{Cur: files.Cur, Max: files.Max}
	}
	for _, fd := range attr.Files {
		q.Files = append(q.Files, int(int32(fd)))
	}
	if attr.Sys != nil {
		if err := translate(&q, attr.Sys); err != nil {
			return 0, err
		}
	}
	if err := open(); err != nil {
		return 0, err
	}
	pid, fd, errno := host.Load().Spawn(q)
	if errno != 0 {
		return 0, syscall.Errno(errno)
	}
	if q.ProcessFD {
		*attr.Sys.PidFD = fd
	}
	return pid, nil
}

// translate adds the attributes of Linux to q. Errors: Unsupported.
func translate(q *spawn.Attributes, sys *syscall.SysProcAttr) error {
	if field := unsupported(sys); field != "" {
		return Unsupported{field}
	}
	q.Root = sys.Chroot
	q.Session, q.Group, q.GroupID = sys.Setsid, sys.Setpgid, sys.Pgid
	q.Foreground, q.Detach, q.Control, q.Terminal = sys.Foreground, sys.Noctty, sys.Setctty, sys.Ctty
	q.DeathSignal, q.Unshare = int(sys.Pdeathsig), int(sys.Unshareflags)
	q.ProcessFD = sys.PidFD != nil
	for _, c := range sys.AmbientCaps {
		q.Ambient = append(q.Ambient, int(c))
	}
	if c := sys.Credential; c != nil {
		q.User = &spawn.User{UID: c.Uid, GID: c.Gid, Groups: c.Groups, KeepGroups: c.NoSetGroups}
	}
	return nil
}

// namespaces are the flags of clone(2) that create namespaces. They are also the flags of unshare(2).
const namespaces = linux.CLONE_NEWCGROUP | linux.CLONE_NEWIPC | linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWPID |
	linux.CLONE_NEWTIME | linux.CLONE_NEWUSER | linux.CLONE_NEWUTS

// unsupported returns the name of a field that is set and not supported, or an empty string. A tracer has to be a process
// itself.
func unsupported(sys *syscall.SysProcAttr) string {
	const together = linux.CLONE_VFORK | linux.CLONE_VM
	switch {
	case sys.Ptrace:
		return "Ptrace"
	case sys.Cloneflags&^together != 0:
		return "Cloneflags"
	case sys.Unshareflags&namespaces != 0:
		return "Unshareflags"
	case sys.UidMappings != nil:
		return "UidMappings"
	case sys.GidMappings != nil:
		return "GidMappings"
	case sys.UseCgroupFD:
		return "UseCgroupFD"
	}
	return ""
}

// Unsupported is the error for a field of syscall.SysProcAttr that is set and not supported. It is errors.ErrUnsupported
// for errors.Is.
type Unsupported struct{ Field string }

// Error implements error.
func (u Unsupported) Error() string { return "SysProcAttr." + u.Field + " is not supported on Loam" }

// Unwrap returns ENOSYS.
func (Unsupported) Unwrap() error { return syscall.Errno(linux.ENOSYS) }
