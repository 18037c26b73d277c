// Package spawn implements the parts of a combined fork(2) and execve(2) that need no process: the attributes of a new
// process, and the system calls that set them. A program in ring 0 cannot fork, since its copy would be a second kernel.
// Therefore a child process is created before its program is loaded. It makes the system calls that package syscall of Go
// makes between fork and exec, in the same order (syscall.forkAndExecInChild1). The first error ends the child and is the
// result.
package spawn

import (
	"encoding/binary"
	"slices"

	"loam/abi/linux"
	"loam/posix/call"
)

// Attributes describe a new process, as syscall.ProcAttr and syscall.SysProcAttr do.
type Attributes struct {
	Path      string // path of the program, relative to the child's working directory
	Args, Env []string
	Dir       string // working directory; empty: the parent's
	Root      string // argument of chroot(2); empty: the root of the parent
	Files     []int  // descriptors of the parent that become 0, 1 and so on in the child; -1: not open

	Session    bool // call setsid(2)
	Group      bool // call setpgid(2) with GroupID
	GroupID    int
	Foreground bool // make the process group the foreground group of the terminal; Terminal is a descriptor of the parent
	Detach     bool // call TIOCNOTTY on descriptor 0
	Control    bool // call TIOCSCTTY; Terminal is a descriptor of the child
	Terminal   int

	User        *User
	Ambient     []int // ambient capabilities
	DeathSignal int   // argument of PR_SET_PDEATHSIG; 0: none
	Unshare     int   // flags of unshare(2); 0: not called
	OpenFiles   *linux.Rlimit

	ProcessFD bool // the result includes a pidfd of the child
}

// User holds the IDs of a new process. Groups is not used if KeepGroups is set.
type User struct {
	UID, GID   uint32
	Groups     []uint32
	KeepGroups bool
}

// Caller makes system calls for a child process that has no memory yet. After an error it makes no further calls.
type Caller struct {
	// Call makes a system call of the child. Memory stands for the child's memory, and holds the arguments of the calls.
	Call   func(number uint64, a call.Args) (uint64, linux.Errno)
	Memory Memory
	errno  linux.Errno
}

// Prepare makes the system calls between fork and exec. It stops at the first error.
func (c *Caller) Prepare(q *Attributes) linux.Errno {
	c.relate(q)
	c.restrict(q)
	c.arrange(q)
	return c.errno
}

// do makes a system call of the child and returns its result, unless an earlier call has failed.
func (c *Caller) do(number uint64, args ...uint64) uint64 {
	if c.errno != 0 {
		return 0
	}
	var a [6]uint64
	copy(a[:], args)
	n, errno := c.Call(number, call.Args{A1: a[0], A2: a[1], A3: a[2], A4: a[3], A5: a[4], A6: a[5]})
	c.errno = errno
	return n
}

// try makes a system call of the child and ignores its error.
func (c *Caller) try(number uint64, args ...uint64) {
	before := c.errno
	c.do(number, args...)
	c.errno = before
}

// relate sets the session and the process group of the child.
func (c *Caller) relate(q *Attributes) {
	if len(q.Ambient) > 0 {
		c.do(linux.SYS_PRCTL, linux.PR_SET_KEEPCAPS, 1)
	}
	if q.Session {
		c.do(linux.SYS_SETSID)
	}
	if q.Group || q.Foreground {
		c.do(linux.SYS_SETPGID, 0, uint64(q.GroupID))
	}
	if q.Foreground {
		group := uint64(q.GroupID)
		if group == 0 {
			group = c.do(linux.SYS_GETPID)
		}
		at := c.Memory.Store(binary.LittleEndian.AppendUint32(nil, uint32(group)))
		c.do(linux.SYS_IOCTL, uint64(q.Terminal), linux.TIOCSPGRP, at)
	}
	if q.Unshare != 0 {
		c.do(linux.SYS_UNSHARE, uint64(q.Unshare))
	}
}

// restrict sets the root folder, the user, the capabilities, the working folder and the parent death signal
// of the child.
func (c *Caller) restrict(q *Attributes) {
	if q.Root != "" {
		c.do(linux.SYS_CHROOT, c.Memory.text(q.Root))
	}
	if u := q.User; u != nil {
		if !u.KeepGroups {
			var b []byte
			for _, g := range u.Groups {
				b = binary.LittleEndian.AppendUint32(b, g)
			}
			c.do(linux.SYS_SETGROUPS, uint64(len(u.Groups)), c.Memory.Store(b))
		}
		c.do(linux.SYS_SETGID, uint64(u.GID))
		c.do(linux.SYS_SETUID, uint64(u.UID))
	}
	if len(q.Ambient) > 0 {
		c.raise(q.Ambient)
	}
	if q.Dir != "" {
		c.do(linux.SYS_CHDIR, c.Memory.text(q.Dir))
	}
	if q.DeathSignal != 0 {
		c.do(linux.SYS_PRCTL, linux.PR_SET_PDEATHSIG, uint64(q.DeathSignal))
	}
}

// raise adds capabilities to the permitted, inheritable and ambient sets (capabilities(7)).
func (c *Caller) raise(all []int) {
	const version, raise = 0x20080522, 2 // _LINUX_CAPABILITY_VERSION_3 and PR_CAP_AMBIENT_RAISE
	// number of words in struct __user_cap_data_struct, and the indices of two of them
	const words, permitted, inheritable = 3, 1, 2
	header := c.Memory.Store(binary.LittleEndian.AppendUint64(nil, version))
	data := c.Memory.Store(make([]byte, 2*words*4))
	c.do(linux.SYS_CAPGET, header, data)
	for _, n := range all {
		if n < 0 || n > 63 {
			c.errno = linux.EINVAL
			return
		}
		for _, set := range [...]int{permitted, inheritable} {
			c.Memory.or(data+uint64(4*(n/32*words+set)), 1<<(n%32))
		}
	}
	c.do(linux.SYS_CAPSET, header, data)
	for _, n := range all {
		c.do(linux.SYS_PRCTL, linux.PR_CAP_AMBIENT, raise, uint64(n))
	}
}

// arrange moves the descriptors to their final numbers, then sets the terminal and the limit of open files.
func (c *Caller) arrange(q *Attributes) {
	files := slices.Clone(q.Files)
	next := max(len(files), slices.Max(append(files, 0))) + 1
	for i, fd := range files { // descriptors that a later step would overwrite are moved to higher numbers first
		if fd >= 0 && fd < i {
			c.do(linux.SYS_DUP3, uint64(fd), uint64(next), linux.O_CLOEXEC)
			files[i] = next
			next++
		}
	}
	for i, fd := range files {
		switch fd {
		case -1:
			c.try(linux.SYS_CLOSE, uint64(i))
		case i:
			c.do(linux.SYS_FCNTL, uint64(fd), linux.F_SETFD, 0)
		default:
			c.do(linux.SYS_DUP3, uint64(fd), uint64(i), 0)
		}
	}
	for i := len(files); i < 3; i++ {
		c.try(linux.SYS_CLOSE, uint64(i))
	}
	if q.Detach {
		c.do(linux.SYS_IOCTL, 0, linux.TIOCNOTTY)
	}
	if q.Control {
		c.do(linux.SYS_IOCTL, uint64(q.Terminal), linux.TIOCSCTTY, 1)
	}
	if q.OpenFiles != nil && q.OpenFiles.Cur <= q.OpenFiles.Max {
		b := make([]byte, linux.SizeofRlimit)
		q.OpenFiles.Put(b)
		c.try(linux.SYS_PRLIMIT64, 0, linux.RLIMIT_NOFILE, c.Memory.Store(b), 0)
	}
}
