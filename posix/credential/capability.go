package credential

import "loam/abi/linux"

// Methods of Set for calls that change capabilities, and for execve(2).

// SetCapabilities implements capset(2). Errors: EPERM.
func (s Set) SetCapabilities(effective, permitted, inheritable Capabilities) (Set, linux.Errno) {
	effective, permitted, inheritable = effective&All, permitted&All, inheritable&All
	switch {
	case !s.Has(linux.CAP_SETPCAP) && inheritable&^(s.Inheritable|s.Permitted) != 0,
		inheritable&^(s.Inheritable|s.Bounding) != 0,
		permitted&^s.Permitted != 0,
		effective&^permitted != 0:
		return s, linux.EPERM
	}
	s.Effective, s.Permitted, s.Inheritable = effective, permitted, inheritable
	s.Ambient &= permitted & inheritable
	return s, 0
}

// Drop removes a capability from the bounding set (PR_CAPBSET_DROP). Errors: EPERM, EINVAL.
func (s Set) Drop(n uint64) (Set, linux.Errno) {
	switch {
	case !s.Has(linux.CAP_SETPCAP):
		return s, linux.EPERM
	case n > linux.CAP_LAST_CAP:
		return s, linux.EINVAL
	}
	s.Bounding &^= 1 << n
	return s, 0
}

// SetSecure implements PR_SET_SECUREBITS. Errors: EPERM.
func (s Set) SetSecure(bits uint64) (Set, linux.Errno) {
	old := uint64(s.Secure)
	if old&secureLocks>>1&(old^bits) != 0 || old&secureLocks&^bits != 0 || bits&^(secureFlags|secureLocks) != 0 || !s.Has(linux.CAP_SETPCAP) {
		return s, linux.EPERM
	}
	s.Secure = uint32(bits)
	return s, 0
}

// SetKeepCaps implements PR_SET_KEEPCAPS. Errors: EINVAL, EPERM if the flag is locked.
func (s Set) SetKeepCaps(on uint64) (Set, linux.Errno) {
	switch {
	case on > 1:
		return s, linux.EINVAL
	case s.Secure&(KeepCaps<<1) != 0:
		return s, linux.EPERM
	case on == 1:
		s.Secure |= KeepCaps
	default:
		s.Secure &^= KeepCaps
	}
	return s, 0
}

// SetAmbient adds a capability to the ambient set, or removes it (PR_CAP_AMBIENT). Errors: EINVAL, EPERM.
func (s Set) SetAmbient(n uint64, on bool) (Set, linux.Errno) {
	switch {
	case n > linux.CAP_LAST_CAP:
		return s, linux.EINVAL
	case !on:
		s.Ambient &^= 1 << n
	case !s.Permitted.Has(int(n)) || !s.Inheritable.Has(int(n)) || s.Secure&NoAmbientRaise != 0:
		return s, linux.EPERM
	default:
		s.Ambient |= 1 << n
	}
	return s, 0
}

// File holds the attributes of an executable file that change credentials at execve(2). Scripts have none.
type File struct {
	SetUID, SetGID bool // SetGID has an effect only if the file is executable by its group
	UID, GID       uint32
	// Capabilities says that the file has capabilities (setcap(8)).
	Capabilities           bool
	Permitted, Inheritable Capabilities
	Effective              bool
}

// Exec returns the credentials of a program that is executed (capabilities(7), transformation of capabilities during
// execve), and whether AT_SECURE is set. Errors: EPERM for a file whose capabilities the thread cannot get.
func (s Set) Exec(f File) (_ Set, secure bool, errno linux.Errno) {
	old := s
	if !s.NoNewPrivs {
		if f.SetUID {
			s.EUID = f.UID
		}
		if f.SetGID {
			s.EGID = f.GID
		}
	}
	s.Permitted = 0
	effective := false
	if f.Capabilities {
		s.Permitted = s.Bounding&f.Permitted | s.Inheritable&f.Inheritable
		effective = f.Effective
		if effective && f.Permitted&^s.Permitted != 0 {
			return old, false, linux.EPERM
		}
	}
	setID := s.EUID != old.UID || s.EGID != old.GID
	if s.Secure&NoRoot == 0 && !(f.Capabilities && s.UID != 0 && s.EUID == 0) {
		if s.UID == 0 || s.EUID == 0 {
			s.Permitted = s.Bounding | s.Inheritable
		}
		effective = effective || s.EUID == 0
	}
	if s.NoNewPrivs && (setID || s.Permitted&^old.Permitted != 0) {
		s.EUID, s.EGID = s.UID, s.GID
		s.Permitted &= old.Permitted
	}
	s.SUID, s.FSUID, s.SGID, s.FSGID = s.EUID, s.EUID, s.EGID, s.EGID
	if f.Capabilities || setID {
		s.Ambient = 0
	}
	s.Permitted |= s.Ambient
	s.Effective = s.Ambient
	if effective {
		s.Effective = s.Permitted
	}
	s.Secure &^= KeepCaps
	secure = setID || s.UID != 0 && (effective || s.Permitted&^s.Ambient != 0)
	return s, secure, 0
}

// ParseFile decodes the extended attribute security.capability (struct vfs_cap_data), and reports whether it is valid. It ignores
// version 3 with a root ID other than 0: these capabilities are for another user namespace.
func (f *File) ParseFile(b []byte) bool {
	if !linux.ValidVfsCapData(b) {
		return false
	}
	c := linux.ParseVfsCapData(b)
	if c.RootID != 0 {
		return false
	}
	f.Capabilities, f.Effective = true, c.Magic&linux.VFS_CAP_FLAGS_EFFECTIVE != 0
	f.Permitted, f.Inheritable = Capabilities(c.Permitted), Capabilities(c.Inheritable)
	return true
}
