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

// SetNS implements setns(2), for the descriptor of a file in /proc/PID/ns, or with process set for a descriptor of a process. target returns
// the mounts of that process if the caller may inspect it. alone is set if the caller's process has only one thread, and shared if it shares
// its root and working directory with another process (CLONE_FS). There is one namespace of each kind, except for mount namespaces: for the
// other kinds, the call only checks its arguments. Errors: EBADF; EINVAL for another file, another kind, the user namespace, and mounts if the
// process has several threads or shares its root; EUSERS; EPERM; errors of target.
func SetNS(c call.Caller, a call.Args, alone, shared, process bool, target func() (*fs.Tree, linux.Errno)) linux.Errno {
	o := c.Process.Opened(number(a.A1))
	switch {
	case o == nil || o.PathOnly():
		return linux.EBADF
	case process:
		return setNSOf(c, number(a.A2), alone, shared, target)
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
	if want := number(a.A2); want != 0 && want != kind {
		return linux.EINVAL
	}
	return enter(c, kind, mounts, alone, shared)
}

// anyNamespace contains all flags of namespaces.
const anyNamespace = linux.CLONE_NEWNS | linux.CLONE_NEWCGROUP | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC | linux.CLONE_NEWUSER |
	linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWTIME

// setNSOf implements SetNS for the descriptor of a process, and for one or more kinds. Errors: EINVAL without a kind, and those of SetNS.
func setNSOf(c call.Caller, kinds int, alone, shared bool, target func() (*fs.Tree, linux.Errno)) linux.Errno {
	if kinds == 0 || kinds&^anyNamespace != 0 {
		return linux.EINVAL
	}
	mounts, errno := target()
	if errno != 0 {
		return errno
	}
	return enter(c, kinds, mounts, alone, shared)
}

// enter moves the caller to namespaces.
func enter(c call.Caller, kinds int, mounts *fs.Tree, alone, shared bool) linux.Errno {
	move := kinds&linux.CLONE_NEWNS != 0
	switch {
	case kinds&linux.CLONE_NEWUSER != 0:
		return linux.EINVAL
	case kinds == linux.CLONE_NEWTIME && !alone:
		return linux.EUSERS
	case !c.Process.May(linux.CAP_SYS_ADMIN), move && !c.Process.May(linux.CAP_SYS_CHROOT):
		return linux.EPERM
	case move && (!alone || shared || mounts == nil):
		return linux.EINVAL
	case kinds&linux.CLONE_NEWTIME != 0 && !alone:
		return linux.EUSERS
	}
	if move {
		c.Process.EnterMounts(mounts)
	}
	return 0
}
