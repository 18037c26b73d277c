package sandbox

import (
	"unsafe" // for the addresses of structures that the kernel reads

	"golang.org/x/sys/unix"
)

// Bits of struct landlock_ruleset_attr, by the ABI version that introduced them (linux/landlock.h; landlock(7)).
const (
	filesV1 = 1<<13 - 1 // file access rights from EXECUTE to MAKE_SYM
	filesV2 = filesV1 | unix.LANDLOCK_ACCESS_FS_REFER
	filesV3 = filesV2 | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	filesV5 = filesV3 | 1<<15 // file access right IOCTL_DEV
	netV4   = 1<<2 - 1        // network rights BIND_TCP and CONNECT_TCP
	scopeV6 = 1<<2 - 1        // scopes ABSTRACT_UNIX_SOCKET and SIGNAL
)

// rulesetAttr is struct landlock_ruleset_attr. A kernel rejects a structure that is larger than its own, so the size
// passed to it depends on the ABI version.
type rulesetAttr struct {
	files, net, scoped uint64
}

// pathBeneath is struct landlock_path_beneath_attr, which is packed.
type pathBeneath struct {
	allowed uint64
	parent  int32
}

// newRules creates a ruleset that denies everything Landlock can deny, except to read and execute the program's file.
// It returns the ruleset's descriptor and the ABI version. If the kernel has no Landlock, it returns -1 and 0.
func newRules(program int) (fd, version int) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || int(v) < 1 {
		return -1, 0
	}
	attr, size := rulesetFor(int(v))
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, 0
	}
	// execveat needs the right to read the file in addition
	const run = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	rule := pathBeneath{allowed: run, parent: int32(program)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		unix.Close(int(rules))
		return -1, 0
	}
	return int(rules), int(v)
}

// rulesetFor returns the attributes that an ABI version supports, and the structure's size in bytes in that version.
func rulesetFor(version int) (attr rulesetAttr, size uintptr) {
	attr.files, size = filesV1, 8
	if version >= 2 {
		attr.files = filesV2
	}
	if version >= 3 {
		attr.files = filesV3
	}
	if version >= 4 {
		attr.net, size = netV4, 16
	}
	if version >= 5 {
		attr.files = filesV5
	}
	if version >= 6 {
		attr.scoped, size = scopeV6, 24
	}
	return attr, size
}
