package mem

import "loam/abi/linux"

// Hardening is the protection against new code that PR_SET_MDWE of prctl(2) adds to a map, with Linux's bits. The zero value adds none.
type Hardening uint32

const (
	// RefuseExecGain means that no region gets the permissions to write and to execute, and that no region gains the permission to execute.
	RefuseExecGain Hardening = 1
	// NoInherit means that the maps of children and of executed programs do not inherit the protection.
	NoInherit Hardening = 2
)

// Harden sets the protection, which cannot be changed afterwards. Existing regions keep their permissions. Errors: EINVAL, EPERM.
func (m *Map) Harden(h Hardening) error {
	if h&^(RefuseExecGain|NoInherit) != 0 || h == NoInherit {
		return linux.EINVAL
	}
	m.lock()
	defer m.unlock()
	if m.hardening != 0 && m.hardening != h {
		return linux.EPERM
	}
	m.hardening = h
	return nil
}

// Hardening returns the protection of the map.
func (m *Map) Hardening() Hardening {
	m.lock()
	defer m.unlock()
	return m.hardening
}

// Inherited returns the protection that a child or an executed program inherits.
func (h Hardening) Inherited() Hardening {
	if h&NoInherit != 0 {
		return 0
	}
	return h
}

// refuses reports whether a region with the permissions old may not get the permissions prot. For a new region, both are the same.
func (h Hardening) refuses(old, prot Prot) bool {
	return h != 0 && prot&Exec != 0 && (prot&Write != 0 || old&Exec == 0)
}
