package mount

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/call"
)

// Namespace is the node of a file in /proc/PID/ns.
type Namespace interface {
	fs.Node
	// Namespace returns the kind, such as CLONE_NEWNET, and the mounts of a mount namespace.
	Namespace() (kind int, mounts *fs.Tree)
}

// SetNS implements setns(2) for the descriptor of a file in /proc/PID/ns. alone is set if the process has only one thread, and shared if it
// shares its root and working directory with another process (CLONE_FS). There is one namespace of each kind, except for mount
// namespaces: for the other kinds, the call only checks its arguments. Errors: EBADF; EINVAL for another file, another kind, the user
// namespace, and mounts if the process has several threads or shares its root; EUSERS; EPERM.
func SetNS(c call.Caller, a call.Args, alone, shared bool) linux.Errno {
	o := c.Process.Opened(number(a.A1))
	if o == nil || o.PathOnly() {
		return linux.EBADF
	}
	f, ok := o.File.(interface{ Place() fs.Place })
	if !ok {
		return linux.EINVAL
	}
	n, ok := f.Place().Node.(Namespace)
	if !ok {
		return linux.EINVAL
	}
	kind, mounts := n.Namespace()
	switch want := number(a.A2); {
	case want != 0 && want != kind, kind == linux.CLONE_NEWUSER:
		return linux.EINVAL
	case kind == linux.CLONE_NEWTIME && !alone:
		return linux.EUSERS
	case !c.Process.May(linux.CAP_SYS_ADMIN):
		return linux.EPERM
	case kind != linux.CLONE_NEWNS:
		return 0
	case !c.Process.May(linux.CAP_SYS_CHROOT):
		return linux.EPERM
	case !alone, shared, mounts == nil:
		return linux.EINVAL
	}
	c.Process.EnterMounts(mounts)
	return 0
}
