package call

import (
	"loam/abi/linux"
	"loam/fs"
)

// namespace is the node of a file in /proc/PID/ns.
type namespace interface {
	Namespace() (kind int, mounts *fs.Tree)
	// Owner returns the user namespace that owns the namespace.
	Owner() fs.Node
}

// namespaceOf returns the namespace of a descriptor, or nil.
func (c Caller) namespaceOf(fd int) namespace {
	o := c.Process.Opened(fd)
	if o == nil {
		return nil
	}
	if f, ok := o.File.(interface{ Place() fs.Place }); ok {
		n, _ := f.Place().Node.(namespace)
		return n
	}
	return nil
}

// namespaceRequest implements the requests of ioctl_ns(2). All namespaces are initial ones or belong to the initial user
// namespace, so none has a parent that the caller may see. Errors: EPERM, EINVAL, EFAULT; ENOTTY for another file.
func (c Caller) namespaceRequest(fd, request int, arg uint64) (uint64, linux.Errno) {
	n := c.namespaceOf(fd)
	if n == nil {
		return fail(linux.ENOTTY)
	}
	kind, _ := n.Namespace()
	switch request {
	case linux.NS_GET_NSTYPE:
		return uint64(kind), 0
	case linux.NS_GET_PARENT:
		if kind == linux.CLONE_NEWUSER || kind == linux.CLONE_NEWPID {
			return fail(linux.EPERM)
		}
		return fail(linux.EINVAL)
	case linux.NS_GET_USERNS:
		if kind == linux.CLONE_NEWUSER {
			return fail(linux.EPERM)
		}
		return result(c.Process.InstallPlace(fs.Unnamed(n.Owner()), fs.ReadOnly, true))
	}
	if kind != linux.CLONE_NEWUSER { // NS_GET_OWNER_UID
		return fail(linux.EINVAL)
	}
	return fail(c.writeUint32(arg, 0))
}
