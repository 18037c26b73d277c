package posix

import (
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/credential"
	"loam/posix/file"
	"loam/posix/socket"
)

// identity holds the thread ID and the credentials of one thread of a Linux program. A Go program has none: its credentials
// come from Options and do not change.
type identity struct {
	tid  int32
	set  atomic.Pointer[credential.Set] // current credentials; a change replaces the whole set
	rest func(asleep bool)
	seen atomic.Pointer[seenView] // file tree as seen with the newest credentials
}

// seenView is a view of the file tree together with the credentials for which it was made.
type seenView struct {
	of   *fs.View
	with *credential.Set
	view fs.View
}

// SetIdentity sets the thread ID and the credentials of p, which is the result of Task for one thread. rest(true) is called
// on the goroutine of the thread before it waits in a call, and rest(false) afterwards.
func (p *Process) SetIdentity(tid int32, c credential.Set, rest func(asleep bool)) {
	p.who = &identity{tid: tid, rest: rest}
	p.who.set.Store(&c)
}

// Identity returns the credentials of the task. The caller must not modify them.
func (p *Process) Identity() *credential.Set {
	if p.who != nil {
		return p.who.set.Load()
	}
	c := credential.New(uint32(p.credentials.UID), uint32(p.credentials.GID))
	return &c
}

// ChangeIdentity replaces the credentials of the task, which SetIdentity must have set before.
func (p *Process) ChangeIdentity(c credential.Set) { p.who.set.Store(&c) }

// sight returns the view of the file tree with the credentials of the thread. The view must not be modified.
func (p *Process) sight() *fs.View {
	v := p.view.Load()
	if p.who == nil {
		return v
	}
	c := p.who.set.Load()
	if s := p.who.seen.Load(); s != nil && s.of == v && s.with == c {
		return &s.view
	}
	s := &seenView{of: v, with: c, view: *v}
	s.view.Who = fs.Credentials{UID: c.FSUID, GID: c.FSGID, Groups: c.Groups, Rights: rightsOf(c.Effective)}
	s.view.Caller = fs.Caller{PID: p.credentials.PID, TID: p.who.tid}
	p.who.seen.Store(s)
	return &s.view
}

// View returns the root, the working directory and the credentials with which the process accesses files. It must not be modified.
func (p *Process) View() *fs.View { return p.sight() }

// rightsOf converts capabilities to the rights that package fs checks.
func rightsOf(c credential.Capabilities) fs.Rights {
	r := fs.Explicit
	for _, x := range [...]struct {
		capability int
		right      fs.Rights
	}{
		{linux.CAP_DAC_OVERRIDE, fs.Override}, {linux.CAP_DAC_READ_SEARCH, fs.ReadSearch}, {linux.CAP_CHOWN, fs.ChangeOwner},
		{linux.CAP_FOWNER, fs.ActAsOwner}, {linux.CAP_FSETID, fs.KeepSetIDs}, {linux.CAP_MKNOD, fs.MakeDevices},
		{linux.CAP_SYS_ADMIN, fs.Administer}, {linux.CAP_SETFCAP, fs.SetCapabilities}, {linux.CAP_NET_ADMIN, fs.ConfigureNet},
	} {
		if c.Has(x.capability) {
			r |= x.right
		}
	}
	return r
}

// Waiting returns the file.Task for a call that waits.
func (p *Process) Waiting() file.Task {
	t := file.Task{Interrupt: p.interrupt, Bed: p.bed}
	if p.who != nil {
		t.Asleep = p.who.rest
	}
	return t
}

// newSleeper registers the thread with q, to wait for a file. A timeout of 0 means no timeout.
func (p *Process) newSleeper(q *file.Queue, timeout time.Duration) *file.Sleeper {
	return file.NewSleeper(q, timeout, p.Waiting())
}

// may reports whether the thread has a capability. A Go program has all capabilities if its user ID is 0.
func (p *Process) may(capability int) bool {
	if p.who == nil {
		return p.credentials.UID == 0
	}
	return p.Identity().Has(capability)
}

// sender returns the IDs of the process and its real user, which the receiver of a message sees (SCM_CREDENTIALS).
func (p *Process) sender() Credentials {
	if p.who == nil {
		return p.credentials
	}
	s := p.Identity()
	return Credentials{PID: p.credentials.PID, UID: int32(s.UID), GID: int32(s.GID), Process: p.credentials.Process}
}

// claimed returns the credentials in an SCM_CREDENTIALS message of the caller. Errors: EPERM, ESRCH.
func (p *Process) claimed(ucred []byte) (Credentials, Errno) {
	c := socket.ParseCredentials(ucred)
	s, ok := p.terminals.Signals().(FileSignals)
	switch {
	case c.PID != p.credentials.PID && !p.may(linux.CAP_SYS_ADMIN), !p.Identity().MayClaim(uint32(c.UID), uint32(c.GID)):
		return c, linux.EPERM
	case c.PID != p.credentials.PID && ok && !s.HasOwner(linux.F_OWNER_PID, c.PID) && !s.HasOwner(linux.F_OWNER_TID, c.PID):
		return c, linux.ESRCH
	}
	if c.Process = p.credentials.Process; c.PID != p.credentials.PID && ok {
		c.Process = s.Watched(c.PID)
	}
	return c, 0
}

// Credentials returns the IDs of the process and its effective user, as the peer of a Unix socket sees them.
func (p *Process) Credentials() Credentials {
	if p.who == nil {
		return p.credentials
	}
	s := p.Identity()
	return Credentials{PID: p.credentials.PID, UID: int32(s.EUID), GID: int32(s.EGID), Process: p.credentials.Process}
}
