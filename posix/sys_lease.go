package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/lock"
)

// lease implements F_SETLEASE and F_GETLEASE. Errors: EINVAL, EACCES, EAGAIN.
func (p *Process) lease(o *file.Description, fd, cmd, kind int) (int, Errno) {
	f, ok := o.File.(*treeFile)
	switch {
	case cmd == linux.F_GETLEASE && !ok:
		return linux.F_UNLCK, 0
	case cmd == linux.F_GETLEASE:
		return p.locks.Leases.Kind(f.Place().Node, f), 0
	case kind < linux.F_RDLCK || kind > linux.F_UNLCK, !ok:
		return -1, linux.EINVAL
	case p.sight().Who.UID != f.Attr().UID && !p.may(linux.CAP_LEASE):
		return -1, linux.EACCES
	case o.File.Mode()&linux.S_IFMT != linux.S_IFREG:
		return -1, linux.EINVAL
	case kind != linux.F_UNLCK && p.inUse(f, kind == linux.F_WRLCK):
		return -1, linux.EAGAIN
	}
	if errno := p.locks.Leases.Set(p.sight().Tree, f.Place().Node, p.wholeLock(f, false), kind, p.reportLease(o, fd)); errno != 0 {
		return -1, errno
	}
	switch {
	case kind == linux.F_UNLCK: // as on Linux, the owner ends with the lease
		o.SetOwner(file.Owner{}, p.reportFile(o))
	case o.GetOwner().ID == 0:
		p.setOwner(o, linux.F_OWNER_PID, p.credentials.PID)
	}
	return 0, 0
}

// inUse reports whether the file of f is open for writing, or with alone set whether it is open in another description.
func (p *Process) inUse(f *treeFile, alone bool) bool {
	for _, o := range p.network().Opened {
		g, ok := o.File.(*treeFile)
		if ok && g.Place().Node == f.Place().Node && g.Flags()&fs.PathOnly == 0 && (alone && g != f || !alone && o.MayWrite()) {
			return true
		}
	}
	return false
}

// reportLease returns the function that sends the signal about a lease that must end.
func (p *Process) reportLease(o *file.Description, fd int) func() {
	const codeMessage, bandMessage = 3, 0x0441 // POLL_MSG
	to, ok := p.terminals.Signals().(FileSignals)
	return func() {
		if w := o.GetOwner(); ok && w.ID != 0 {
			n := linux.SIGIO
			if w.Signal != 0 {
				n = int(w.Signal)
			}
			to.SignalOwner(w, n, codeMessage, bandMessage, fd)
		}
	}
}

// endLease waits for the end of the lease that err reports, if it does, for a call with flags of open(2). again means that the call should be
// repeated. Errors: EINTR.
func (p *Process) endLease(err error, flags int) (again bool, errno Errno) {
	c, ok := err.(*lock.Conflict)
	if !ok || flags&linux.O_NONBLOCK != 0 {
		return false, file.ToErrno(err)
	}
	errno = c.Wait(p.Waiting(), p.credentials.PID)
	return errno == 0, errno
}
