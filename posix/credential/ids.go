package credential

import (
	"slices"

	"loam/abi/linux"
)

// Calls that change user and group IDs.

// unchanged is the argument -1 of setresuid(2) and similar calls, which leaves an ID unchanged.
const unchanged = ^uint32(0)

// FirstPort is the default of the first port that a thread without CAP_NET_BIND_SERVICE may bind
// (/proc/sys/net/ipv4/ip_unprivileged_port_start).
const FirstPort = 1024

// MaxGroups is the largest number of supplementary groups (NGROUPS_MAX).
const MaxGroups = 65536

// SetUID implements setuid(2). Errors: EINVAL, EPERM.
func (s Set) SetUID(id uint32) (Set, linux.Errno) {
	old := s
	switch {
	case id == unchanged:
		return s, linux.EINVAL
	case s.Has(linux.CAP_SETUID):
		s.UID, s.SUID = id, id
	case id != s.UID && id != s.SUID:
		return s, linux.EPERM
	}
	s.EUID, s.FSUID = id, id
	return s.fixed(&old), 0
}

// SetReUID implements setreuid(2). Errors: EPERM.
func (s Set) SetReUID(real, effective uint32) (Set, linux.Errno) {
	old := s
	any := s.Has(linux.CAP_SETUID)
	if real != unchanged {
		if !any && real != old.UID && real != old.EUID {
			return s, linux.EPERM
		}
		s.UID = real
	}
	if effective != unchanged {
		if !any && effective != old.UID && effective != old.EUID && effective != old.SUID {
			return s, linux.EPERM
		}
		s.EUID = effective
	}
	if real != unchanged || effective != unchanged && effective != old.UID {
		s.SUID = s.EUID
	}
	s.FSUID = s.EUID
	return s.fixed(&old), 0
}

// SetResUID implements setresuid(2). If the real, effective and saved IDs all stay the same, the file system ID also stays
// the same. Errors: EPERM.
func (s Set) SetResUID(real, effective, saved uint32) (Set, linux.Errno) {
	old := s
	if keeps(s.UID, real) && keeps(s.EUID, effective) && (effective == unchanged || effective == s.FSUID) && keeps(s.SUID, saved) {
		return s, 0
	}
	for _, id := range [...]uint32{real, effective, saved} {
		if id != unchanged && !s.Has(linux.CAP_SETUID) && id != s.UID && id != s.EUID && id != s.SUID {
			return s, linux.EPERM
		}
	}
	replace(&s.UID, real)
	replace(&s.EUID, effective)
	replace(&s.SUID, saved)
	s.FSUID = s.EUID
	return s.fixed(&old), 0
}

func keeps(id, by uint32) bool { return by == unchanged || by == id }

func replace(id *uint32, by uint32) {
	if by != unchanged {
		*id = by
	}
}

// SetFSUID implements setfsuid(2). It changes nothing if the thread may not use the ID.
func (s Set) SetFSUID(id uint32) Set {
	if id == unchanged || !s.Has(linux.CAP_SETUID) && id != s.UID && id != s.EUID && id != s.SUID && id != s.FSUID {
		return s
	}
	was := s.FSUID
	s.FSUID = id
	if s.Secure&NoSetUIDFixup == 0 {
		switch {
		case was == 0 && id != 0:
			s.Effective &^= fileCapabilities
		case was != 0 && id == 0:
			s.Effective |= fileCapabilities & s.Permitted
		}
	}
	return s
}

// fixed returns s with the capabilities that result from the change of the user IDs from old to s (capabilities(7), effect
// of user ID changes).
func (s Set) fixed(old *Set) Set {
	if s.Secure&NoSetUIDFixup != 0 {
		return s
	}
	had := old.UID == 0 || old.EUID == 0 || old.SUID == 0
	if had && s.UID != 0 && s.EUID != 0 && s.SUID != 0 {
		if s.Secure&KeepCaps == 0 {
			s.Permitted, s.Effective = 0, 0
		}
		s.Ambient = 0
	}
	switch {
	case old.EUID == 0 && s.EUID != 0:
		s.Effective = 0
	case old.EUID != 0 && s.EUID == 0:
		s.Effective = s.Permitted
	}
	return s
}

// SetGID implements setgid(2). Errors: EINVAL, EPERM.
func (s Set) SetGID(id uint32) (Set, linux.Errno) {
	switch {
	case id == unchanged:
		return s, linux.EINVAL
	case s.Has(linux.CAP_SETGID):
		s.GID, s.SGID = id, id
	case id != s.GID && id != s.SGID:
		return s, linux.EPERM
	}
	s.EGID, s.FSGID = id, id
	return s, 0
}

// SetReGID implements setregid(2). Errors: EPERM.
func (s Set) SetReGID(real, effective uint32) (Set, linux.Errno) {
	old := s
	any := s.Has(linux.CAP_SETGID)
	if real != unchanged {
		if !any && real != old.GID && real != old.EGID {
			return s, linux.EPERM
		}
		s.GID = real
	}
	if effective != unchanged {
		if !any && effective != old.GID && effective != old.EGID && effective != old.SGID {
			return s, linux.EPERM
		}
		s.EGID = effective
	}
	if real != unchanged || effective != unchanged && effective != old.GID {
		s.SGID = s.EGID
	}
	s.FSGID = s.EGID
	return s, 0
}

// SetResGID implements setresgid(2), as SetResUID. Errors: EPERM.
func (s Set) SetResGID(real, effective, saved uint32) (Set, linux.Errno) {
	if keeps(s.GID, real) && keeps(s.EGID, effective) && (effective == unchanged || effective == s.FSGID) && keeps(s.SGID, saved) {
		return s, 0
	}
	for _, id := range [...]uint32{real, effective, saved} {
		if id != unchanged && !s.Has(linux.CAP_SETGID) && id != s.GID && id != s.EGID && id != s.SGID {
			return s, linux.EPERM
		}
	}
	replace(&s.GID, real)
	replace(&s.EGID, effective)
	replace(&s.SGID, saved)
	s.FSGID = s.EGID
	return s, 0
}

// SetFSGID implements setfsgid(2). It changes nothing if the thread may not use the ID.
func (s Set) SetFSGID(id uint32) Set {
	if id != unchanged && (s.Has(linux.CAP_SETGID) || id == s.GID || id == s.EGID || id == s.SGID) {
		s.FSGID = id
	}
	return s
}

// SetGroups implements setgroups(2). Errors: EPERM, EINVAL for too many groups.
func (s Set) SetGroups(groups []uint32) (Set, linux.Errno) {
	switch {
	case !s.Has(linux.CAP_SETGID):
		return s, linux.EPERM
	case len(groups) > MaxGroups || slices.Contains(groups, unchanged):
		return s, linux.EINVAL
	}
	s.Groups = slices.Clone(groups)
	slices.Sort(s.Groups)
	return s, 0
}
