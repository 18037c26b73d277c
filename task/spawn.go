package task

import (
	"encoding/binary"
	"slices"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/signal"
)

// Spawn is fork(2) and execve(2) in one step, for a program in ring 0, which cannot fork: its copy would be a second
// kernel. The child exists before its program is loaded. It makes the calls that package syscall of Go makes between
// fork and exec, in the same order; the first that fails ends the child, and its error is the result.

// Spawn describes a new process, as syscall.ProcAttr and syscall.SysProcAttr do.
type Spawn struct {
	Path      string // relative to the child's working directory
	Args, Env []string
	Dir       string // empty: the program's
	Root      string // for chroot(2); empty: the program's
	Files     []int  // the program's descriptors that become 0, 1 and so on; -1: closed

	Session    bool // setsid(2)
	Group      bool // setpgid(2), with GroupID
	GroupID    int
	Foreground bool // makes the group the foreground group of the terminal with the program's descriptor Terminal
	Detach     bool // TIOCNOTTY on descriptor 0
	Control    bool // TIOCSCTTY on the child's descriptor Terminal
	Terminal   int

	User        *User
	Ambient     []int // capabilities
	DeathSignal int   // PR_SET_PDEATHSIG; 0: none
	Unshare     int   // flags of unshare(2); 0: none
	OpenFiles   *linux.Rlimit

	ProcessFD bool // also returns a pidfd
}

// User is the user of a new process. Groups is nil if KeepGroups.
type User struct {
	UID, GID   uint32
	Groups     []uint32
	KeepGroups bool
}

// Spawn starts a process, and returns its ID and its pidfd, or -1 without Spawn.ProcessFD. Errors: those of fork(2),
// execve(2), and the calls between them.
func (h *Host) Spawn(q Spawn) (pid, fd int, errno linux.Errno) {
	s := h.process.system
	s.mu.Lock()
	node, err := s.tree.Fork(s.root, false)
	s.mu.Unlock()
	if err != nil {
		return 0, -1, errnoOf(err)
	}
	p := newProcess(s, node)
	fd = -1
	if q.ProcessFD {
		if fd, errno = h.config.Process.InstallProcess(p, 0); errno != 0 {
			h.discard(p, nil)
			return 0, -1, errno
		}
	}
	t := h.newborn(p)
	if errno := t.prepare(&q); errno != 0 {
		if fd >= 0 {
			h.config.Process.Close(fd)
		}
		h.discard(p, t)
		return 0, -1, errno
	}
	go t.loop()
	return int(node.PID), fd, 0
}

// newborn returns the first task of a process, which has no program yet.
func (h *Host) newborn(p *Process) *Task {
	s := p.system
	p.posix = h.config.Process.Fork(int32(p.node.PID), 0)
	p.posix.SetSender(p.sendTimer)
	v := p.posix.View()
	if place, err := v.Lookup(v.Root, h.config.Executable, true); err == nil {
		p.exe = executed{path: h.config.Executable, place: place}
	}
	var signals *signal.Thread
	p.signals, signals = signal.NewProcess()
	ignored := h.config.Ignored()
	for n := signal.Number(1); n <= signal.Last; n++ {
		if ignored.Has(n) {
			p.signals.SetAction(n, signal.Action{Handler: signal.Ignore})
		}
	}
	creds := *h.config.Process.Identity()
	s.mu.Lock()
	t := p.newTask(p.node.PID, noThread{}, signals, p.posix, &creds)
	s.processes[p.node.PID] = p
	s.forks++
	s.mu.Unlock()
	t.setComm("loam")
	t.traits.slack = defaultSlack
	t.altStack.Flags = linux.SS_DISABLE
	return t
}

// discard removes a process whose program was not started.
func (h *Host) discard(p *Process, t *Task) {
	s := p.system
	if t != nil {
		p.posix.CloseAll()
		p.endSession()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t != nil {
		t.closed = true
		p.remove(t, false)
		delete(s.processes, p.node.PID)
	}
	s.tree.Exit(p.node, 0)
	s.tree.Wait(s.root, family.Selector(p.node.PID), family.Wanted{Exited: true})
	h.process.wakeWaiters()
}

// prepare makes the calls of the child, and loads its program.
func (t *Task) prepare(q *Spawn) linux.Errno {
	c := &calls{task: t}
	t.caller.Memory = &c.memory
	c.relate(q)
	c.restrict(q)
	c.arrange(q)
	if c.errno != 0 {
		return c.errno
	}
	i, err := t.process.load(t.caller.Process, t.creds(), linux.AT_FDCWD, q.Path, q.Args, q.Env)
	if err != nil {
		return errnoOf(err)
	}
	t.begin(i)
	return 0
}

// begin makes an image the first program of the task's process.
func (t *Task) begin(i *image) {
	p, s := t.process, t.process.system
	files := p.posix.Exec()
	dumpable := !i.secure && i.creds.EUID == i.creds.UID && i.creds.EGID == i.creds.GID
	if i.secure || i.creds.MorePrivileged(t.creds()) {
		p.deathSignal.Store(0)
	}
	t.caller.Memory = memory{t}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.dumpable.Store(dumpable)
	p.posix, p.exe = files, i.program
	p.node.Executed = true
	t.thread = i.thread
	t.setComm(i.name)
	t.callAs(files, &i.creds)
	p.space.Store(i.space)
	p.applyLimits()
	t.since = s.clock()
}

// calls makes system calls for a task that has no memory yet. After an error it makes none.
type calls struct {
	task   *Task
	memory arena
	errno  linux.Errno
}

// do makes a call.
func (c *calls) do(number uint64, args ...uint64) uint64 {
	if c.errno != 0 {
		return 0
	}
	var a [6]uint64
	copy(a[:], args)
	n, errno := c.task.call(number, call.Args{A1: a[0], A2: a[1], A3: a[2], A4: a[3], A5: a[4], A6: a[5]})
	c.errno = errno
	return n
}

// try makes a call whose error does not matter.
func (c *calls) try(number uint64, args ...uint64) {
	before := c.errno
	c.do(number, args...)
	c.errno = before
}

// relate sets the session and the process group.
func (c *calls) relate(q *Spawn) {
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
		group := q.GroupID
		if group == 0 {
			group = int(c.task.process.node.PID)
		}
		at := c.memory.store(binary.LittleEndian.AppendUint32(nil, uint32(group)))
		c.do(linux.SYS_IOCTL, uint64(q.Terminal), linux.TIOCSPGRP, at)
	}
	if q.Unshare != 0 {
		c.do(linux.SYS_UNSHARE, uint64(q.Unshare))
	}
}

// restrict sets the root folder, the user, the capabilities, the working folder and the death signal.
func (c *calls) restrict(q *Spawn) {
	if q.Root != "" {
		c.do(linux.SYS_CHROOT, c.memory.text(q.Root))
	}
	if u := q.User; u != nil {
		if !u.KeepGroups {
			var b []byte
			for _, g := range u.Groups {
				b = binary.LittleEndian.AppendUint32(b, g)
			}
			c.do(linux.SYS_SETGROUPS, uint64(len(u.Groups)), c.memory.store(b))
		}
		c.do(linux.SYS_SETGID, uint64(u.GID))
		c.do(linux.SYS_SETUID, uint64(u.UID))
	}
	if len(q.Ambient) > 0 {
		c.raise(q.Ambient)
	}
	if q.Dir != "" {
		c.do(linux.SYS_CHDIR, c.memory.text(q.Dir))
	}
	if q.DeathSignal != 0 {
		c.do(linux.SYS_PRCTL, linux.PR_SET_PDEATHSIG, uint64(q.DeathSignal))
	}
}

// raise adds capabilities to the permitted, inheritable and ambient sets (capabilities(7)).
func (c *calls) raise(all []int) {
	const version, raise = 0x20080522, 2          // _LINUX_CAPABILITY_VERSION_3, PR_CAP_AMBIENT_RAISE
	const words, permitted, inheritable = 3, 1, 2 // of struct __user_cap_data_struct
	header := c.memory.store(binary.LittleEndian.AppendUint64(nil, version))
	data := c.memory.store(make([]byte, 2*words*4))
	c.do(linux.SYS_CAPGET, header, data)
	for _, n := range all {
		if n < 0 || n > 63 {
			c.errno = linux.EINVAL
			return
		}
		for _, set := range [...]int{permitted, inheritable} {
			c.memory.or(data+uint64(4*(n/32*words+set)), 1<<(n%32))
		}
	}
	c.do(linux.SYS_CAPSET, header, data)
	for _, n := range all {
		c.do(linux.SYS_PRCTL, linux.PR_CAP_AMBIENT, raise, uint64(n))
	}
}

// arrange puts the descriptors in their places, then sets the terminal and the limit of open files.
func (c *calls) arrange(q *Spawn) {
	files := slices.Clone(q.Files)
	next := max(len(files), slices.Max(append(files, 0))) + 1
	for i, fd := range files { // those that a later step would overwrite move up
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
		c.try(linux.SYS_PRLIMIT64, 0, linux.RLIMIT_NOFILE, c.memory.store(b), 0)
	}
}

// arena implements call.Memory with a buffer: the memory of a task that has none yet. Addresses count from arenaStart.
type arena struct{ bytes []byte }

const arenaStart = 1 << 12

// store adds bytes, and returns their address.
func (m *arena) store(b []byte) uint64 {
	at := uint64(arenaStart + len(m.bytes))
	m.bytes = append(append(m.bytes, b...), make([]byte, -len(b)&7)...)
	return at
}

// text adds a string.
func (m *arena) text(s string) uint64 { return m.store(append([]byte(s), 0)) }

// or sets bits of a stored word.
func (m *arena) or(addr uint64, bits uint32) {
	b := m.bytes[addr-arenaStart:]
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)|bits)
}

// at returns n stored bytes, or nil.
func (m *arena) at(addr uint64, n int) []byte {
	if addr < arenaStart || addr-arenaStart > uint64(len(m.bytes)) || n > len(m.bytes)-int(addr-arenaStart) {
		return nil
	}
	return m.bytes[addr-arenaStart:][:n]
}

// Read implements call.Memory.
func (m *arena) Read(b []byte, addr uint64) linux.Errno {
	from := m.at(addr, len(b))
	if from == nil && len(b) > 0 {
		return linux.EFAULT
	}
	copy(b, from)
	return 0
}

// Write implements call.Memory.
func (m *arena) Write(addr uint64, b []byte) linux.Errno {
	to := m.at(addr, len(b))
	if to == nil && len(b) > 0 {
		return linux.EFAULT
	}
	copy(to, b)
	return 0
}

// Pointer implements call.Memory.
func (m *arena) Pointer(addr uint64) (uint64, linux.Errno) {
	b := m.at(addr, 8)
	if b == nil {
		return 0, linux.EFAULT
	}
	return binary.LittleEndian.Uint64(b), 0
}

// String implements call.Memory.
func (m *arena) String(addr uint64, most int) (string, linux.Errno) {
	b := m.at(addr, 0)
	if b == nil {
		return "", linux.EFAULT
	}
	b = m.bytes[addr-arenaStart:]
	end := slices.Index(b, 0)
	if end < 0 || end >= most {
		return "", linux.ENAMETOOLONG
	}
	return string(b[:end]), 0
}

// Bytes implements call.Memory: everything is copied.
func (*arena) Bytes(uint64, int) ([]byte, linux.Errno) { return nil, 0 }

// Scratch implements call.Memory.
func (*arena) Scratch() []byte { return nil }
