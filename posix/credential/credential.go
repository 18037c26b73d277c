// Package credential holds the credentials of a thread: user and group IDs, capabilities and the rules by which they
// change (credentials(7), capabilities(7)).
//
// It is a pure machine. A Set is a value; each call of Linux that changes it is a method that returns the changed copy,
// or the error of the call. The tests make the same random calls on a thread of Linux.
package credential

import (
	"slices"

	"loam/abi/linux"
)

// Capabilities is a set of capabilities; bit n is the capability with number n.
type Capabilities uint64

// All is the set of all capabilities that Linux defines.
const All Capabilities = 1<<(linux.CAP_LAST_CAP+1) - 1

// Has reports whether a set contains a capability.
func (c Capabilities) Has(n int) bool { return c>>n&1 != 0 }

// fileCapabilities are the capabilities that concern files. setfsuid(2) clears them when the ID changes from 0, and restores
// them when it becomes 0.
const fileCapabilities Capabilities = 1<<linux.CAP_CHOWN | 1<<linux.CAP_DAC_OVERRIDE | 1<<linux.CAP_DAC_READ_SEARCH |
	1<<linux.CAP_FOWNER | 1<<linux.CAP_FSETID | 1<<linux.CAP_LINUX_IMMUTABLE | 1<<linux.CAP_MAC_OVERRIDE | 1<<linux.CAP_MKNOD

// Bits of Set.Secure (capabilities(7), the securebits flags). Each is followed by the bit that locks it.
const (
	NoRoot         = 1 << 0 // SECBIT_NOROOT: execve(2) gives user 0 no capabilities
	NoSetUIDFixup  = 1 << 2 // SECBIT_NO_SETUID_FIXUP: a change of user IDs leaves the capabilities unchanged
	KeepCaps       = 1 << 4 // SECBIT_KEEP_CAPS: the permitted set is kept when no user ID is 0 any more
	NoAmbientRaise = 1 << 6

	secureFlags = NoRoot | NoSetUIDFixup | KeepCaps | NoAmbientRaise
	secureLocks = secureFlags << 1
)

// Set holds the credentials of a thread. The slice Groups is never modified after it has been stored.
type Set struct {
	UID, EUID, SUID, FSUID uint32
	GID, EGID, SGID, FSGID uint32
	Groups                 []uint32 // supplementary group IDs, in ascending order

	Effective, Permitted, Inheritable, Bounding, Ambient Capabilities

	Secure     uint32
	NoNewPrivs bool
}

// New returns the credentials of a process that the system starts for a user. User 0 has all capabilities.
func New(uid, gid uint32, groups ...uint32) Set {
	groups = slices.Clone(groups)
	slices.Sort(groups)
	s := Set{UID: uid, EUID: uid, SUID: uid, FSUID: uid, GID: gid, EGID: gid, SGID: gid, FSGID: gid, Groups: groups, Bounding: All}
	if uid == 0 {
		s.Effective, s.Permitted = All, All
	}
	return s
}

// Has reports whether the thread has a capability, in its effective set.
func (s *Set) Has(n int) bool { return s.Effective.Has(n) }

// InGroup reports whether gid is the effective group ID or a supplementary group ID.
func (s *Set) InGroup(gid uint32) bool { return s.EGID == gid || slices.Contains(s.Groups, gid) }

// MaySignal reports whether a thread with the credentials s may send a signal to a
// process with the credentials target (kill(2)). The caller handles the exceptions:
// threads of the same process, and SIGCONT within a session.
func (s *Set) MaySignal(target *Set) bool {
	return s.Has(linux.CAP_KILL) || s.EUID == target.SUID || s.EUID == target.UID || s.UID == target.SUID || s.UID == target.UID
}

// MayClaim reports whether the thread may name these IDs as its own in a message (SCM_CREDENTIALS, unix(7)).
func (s *Set) MayClaim(uid, gid uint32) bool {
	return (s.Has(linux.CAP_SETUID) || uid == s.UID || uid == s.EUID || uid == s.SUID) &&
		(s.Has(linux.CAP_SETGID) || gid == s.GID || gid == s.EGID || gid == s.SGID)
}

// MayBeSignalled reports whether a thread with these user IDs that made s the owner of a file (F_SETOWN) may send signals to s
// (sigio_perm).
func (s *Set) MayBeSignalled(uid, euid uint32) bool {
	return euid == 0 || euid == s.SUID || euid == s.UID || uid == s.SUID || uid == s.UID
}

// ForAccess returns the credentials with which access(2) checks a file: the real IDs, and the permitted capabilities for user 0 or no
// capabilities for another user. It reports whether they differ from those of other calls.
func (s Set) ForAccess() (_ Set, differs bool) {
	old := s
	s.FSUID, s.FSGID = s.UID, s.GID
	switch {
	case s.Secure&NoSetUIDFixup != 0: // user 0 has no special capabilities
	case s.UID == 0:
		s.Effective = s.Permitted
	default:
		s.Effective = 0
	}
	return s, s.FSUID != old.FSUID || s.FSGID != old.FSGID || s.Effective != old.Effective
}

// MayTrace reports whether a thread with the credentials s may inspect a process with the
// credentials target (ptrace(2), ptrace access mode checking). fsids selects
// PTRACE_MODE_FSCREDS instead of PTRACE_MODE_REALCREDS. dumpable is PR_GET_DUMPABLE of
// the inspected process.
func (s *Set) MayTrace(target *Set, dumpable, fsids bool) bool {
	if s.Has(linux.CAP_SYS_PTRACE) {
		return true
	}
	uid, gid := s.UID, s.GID
	if fsids {
		uid, gid = s.FSUID, s.FSGID
	}
	same := uid == target.EUID && uid == target.SUID && uid == target.UID && gid == target.EGID && gid == target.SGID && gid == target.GID
	return same && dumpable && target.Permitted&^s.Permitted == 0
}

// MorePrivileged reports whether a change of credentials from old to s resets PR_SET_DUMPABLE and PR_SET_PDEATHSIG
// (prctl(2)).
func (s *Set) MorePrivileged(old *Set) bool {
	return s.EUID != old.EUID || s.EGID != old.EGID || s.FSUID != old.FSUID || s.FSGID != old.FSGID || s.Permitted&^old.Permitted != 0
}
