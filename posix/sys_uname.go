package posix

import "loam/abi/linux"

// releaseMark is appended to the release of the underlying kernel. Programs parse the release to learn
// which calls exist, so it must still begin with the kernel's version.
const releaseMark = "-loam"

// Uname implements uname(2). System and release come from the underlying kernel. The node name is
// Options.Hostname if that is set.
func (p *Process) Uname() linux.Utsname {
	var u linux.Utsname
	if k := p.kernel; k != nil {
		u = k.Names()
	}
	u.Release += releaseMark
	if name := p.hostname; name != "" {
		u.Nodename = name
	}
	return u
}
