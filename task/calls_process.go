package task

import (
	"encoding/binary"
	"io"
	"time"

	"loam/abi/linux"
	"loam/exec"
	"loam/mem/cache"
	"loam/posix"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/signal"
)

// processCalls create, replace, end and await processes and threads.
var processCalls = map[int]serveFunc{
	linux.SYS_CLONE: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.clone(clone{flags: a.A1 &^ 0xff, signal: a.A1 & 0xff, stack: a.A2, parentID: a.A3, childID: a.A4, tls: a.A5})
	},
	linux.SYS_CLONE3: clone3,
	linux.SYS_FORK: func(t *Task, _ call.Args) (uint64, linux.Errno) {
		return t.clone(clone{signal: linux.SIGCHLD})
	},
	linux.SYS_VFORK: func(t *Task, _ call.Args) (uint64, linux.Errno) {
		return t.clone(clone{flags: linux.CLONE_VM | linux.CLONE_VFORK, signal: linux.SIGCHLD})
	},
	linux.SYS_EXECVE: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.execve(linux.AT_FDCWD, a.A1, a.A2, a.A3, 0)
	},
	linux.SYS_EXECVEAT: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.execve(number(a.A1), a.A2, a.A3, a.A4, number(a.A5))
	},
	linux.SYS_EXIT: func(t *Task, a call.Args) (uint64, linux.Errno) {
		t.leaving = true
		s := t.process.system
		s.mu.Lock()
		defer s.mu.Unlock()
		if !t.process.ending && len(t.process.tasks) == 1 {
			t.process.status = int32(a.A1&0xff) << 8
		}
		return 0, noResult
	},
	linux.SYS_EXIT_GROUP: func(t *Task, a call.Args) (uint64, linux.Errno) {
		s := t.process.system
		s.mu.Lock()
		defer s.mu.Unlock()
		t.process.end(int32(a.A1&0xff) << 8)
		t.leaving = true
		return 0, noResult
	},
	linux.SYS_WAIT4:  wait4,
	linux.SYS_WAITID: waitid,
}

// clone is a call of clone(2), clone3(2), fork(2) or vfork(2).
type clone struct {
	flags, signal     uint64
	stack             uint64 // 0: that of the caller
	parentID, childID uint64
	tls               uint64
}

// clone3 implements clone3(2), without pidfds, chosen IDs and control groups.
func clone3(t *Task, a call.Args) (uint64, linux.Errno) {
	const least = 64
	if a.A2 < least {
		return 0, linux.EINVAL
	}
	var b [least]byte
	if errno := t.caller.Memory.Read(b[:], a.A1); errno != 0 {
		return 0, errno
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*8:]) }
	c := clone{flags: word(0), childID: word(2), parentID: word(3), signal: word(4), stack: word(5) + word(6), tls: word(7)}
	return t.clone(c)
}

// clone creates a thread or a process. Errors: EINVAL, EAGAIN, ENOMEM, EMFILE.
func (t *Task) clone(c clone) (uint64, linux.Errno) {
	const (
		namespaces = 0x7e020080 // CLONE_NEW*
		pidfd      = 0x1000
		thread     = linux.CLONE_THREAD
	)
	switch {
	case c.flags&namespaces != 0:
		return 0, linux.EPERM
	case c.flags&pidfd != 0,
		c.flags&thread != 0 && c.flags&linux.CLONE_SIGHAND == 0,
		c.flags&linux.CLONE_SIGHAND != 0 && c.flags&linux.CLONE_VM == 0:
		return 0, linux.EINVAL
	}
	if c.flags&thread != 0 {
		return t.newThread(c)
	}
	return t.fork(c)
}

// copied returns a thread in a space with this task's registers, as a child of clone(2) begins.
func (t *Task) copied(space Space, c clone) (Thread, linux.Errno) {
	child, err := space.NewThread()
	if err != nil {
		return nil, linux.ENOMEM
	}
	f := child.Registers()
	*f = *t.thread.Registers()
	f.AX = 0
	if c.stack != 0 {
		f.SP = c.stack
	}
	fs, gs := t.thread.Bases()
	if c.flags&linux.CLONE_SETTLS != 0 {
		fs = c.tls
	}
	if child.SetBases(fs, gs) != nil {
		child.Close()
		return nil, linux.EPERM
	}
	child.SetVectors(t.thread.Vectors())
	child.Restore()
	return child, 0
}

func (t *Task) newThread(c clone) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	thread, errno := t.copied(t.memory().Space, c)
	if errno != 0 {
		return 0, errno
	}
	s.mu.Lock()
	id, err := s.tree.Thread()
	if err != nil || p.ending {
		if err == nil {
			s.tree.Forget(id)
		}
		s.mu.Unlock()
		thread.Close()
		return 0, linux.EAGAIN
	}
	child := p.newTask(id, thread, p.signals.Clone(t.signals.Mask()), p.posix)
	child.name = t.name
	s.mu.Unlock()
	t.announce(child, c, memory{t})
	go child.loop()
	return uint64(id), 0
}

// announce writes the IDs that clone(2) has been asked to write.
func (t *Task) announce(child *Task, c clone, of memory) {
	if c.flags&linux.CLONE_PARENT_SETTID != 0 {
		memory{t}.setWord(c.parentID, uint32(child.id))
	}
	if c.flags&linux.CLONE_CHILD_SETTID != 0 {
		of.setWord(c.childID, uint32(child.id))
	}
	if c.flags&linux.CLONE_CHILD_CLEARTID != 0 {
		child.clearID = c.childID
	}
}

// fork creates a process. With CLONE_VFORK it waits until the child has other memory, or has ended.
func (t *Task) fork(c clone) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	space, errno := t.forkMemory(c)
	if errno != 0 {
		return 0, errno
	}
	thread, errno := t.copied(space.Space, c)
	if errno != 0 {
		space.leave()
		return 0, errno
	}
	s.mu.Lock()
	node, err := s.tree.Fork(p.node)
	s.mu.Unlock()
	if err != nil {
		thread.Close()
		space.leave()
		return 0, linux.EAGAIN
	}
	child := newProcess(s, node)
	share := posix.Share(0)
	if c.flags&linux.CLONE_FILES != 0 {
		share |= posix.ShareDescriptors
	}
	if c.flags&linux.CLONE_FS != 0 {
		share |= posix.SharePlace
	}
	child.posix, errno = p.posix.Fork(int32(node.PID), share)
	if errno != 0 {
		s.mu.Lock()
		s.tree.Exit(node, 0)
		s.mu.Unlock()
		thread.Close()
		space.leave()
		return 0, errno
	}
	child.space.Store(space)
	child.path, child.limits = p.path, p.limits
	var gone chan struct{}
	if c.flags&linux.CLONE_VFORK != 0 {
		gone = make(chan struct{})
		child.expects = gone
	}
	s.mu.Lock()
	process, signals := t.signals.Fork()
	child.signals = process
	ct := child.newTask(node.PID, thread, signals, child.posix)
	ct.name, ct.altStack = t.name, t.altStack
	if c.flags&linux.CLONE_VM != 0 && c.flags&linux.CLONE_VFORK == 0 {
		ct.altStack = linux.SigStack{Flags: linux.SS_DISABLE}
	}
	s.processes[node.PID] = child
	s.mu.Unlock()
	t.announce(ct, c, memory{ct})
	go ct.loop()
	if gone != nil {
		t.awaitVfork(gone)
	}
	return uint64(node.PID), 0
}

// awaitVfork waits for a vfork child. Only the end of this process interrupts it.
func (t *Task) awaitVfork(gone <-chan struct{}) {
	for {
		if t.await(gone, forever) == 0 {
			return
		}
		s := t.process.system
		s.mu.Lock()
		ending := t.process.ending
		s.mu.Unlock()
		if ending {
			return
		}
	}
}

// forkMemory returns the memory of a child: the same, or a copy.
func (t *Task) forkMemory(c clone) (*addressSpace, linux.Errno) {
	own := t.memory()
	if c.flags&linux.CLONE_VM != 0 {
		own.users.Add(1)
		return own, 0
	}
	tables, err := t.process.system.config.Machine.NewSpace()
	if err != nil {
		return nil, linux.ENOMEM
	}
	m, err := own.Fork(tables)
	if err != nil {
		tables.Close()
		return nil, errnoOf(err)
	}
	a := &addressSpace{Space: tables, Map: m}
	a.users.Store(1)
	return a, 0
}

// opener opens files for package exec.
type opener struct {
	process *posix.Process
	files   *files
	path    string // of the last file
}

// open returns an executable file, relative to a directory descriptor.
func (o *opener) open(dirfd int, path string) (exec.File, error) {
	m, errno := o.process.OpenExecutable(dirfd, path)
	if errno != 0 {
		return exec.File{}, errno
	}
	o.path = m.Path
	f := o.files.object(m)
	return exec.File{Reader: cachedReader{f}, Object: f}, nil
}

// cachedReader reads a file through its pages.
type cachedReader struct{ *cache.File }

// ReadAt implements io.ReaderAt.
func (r cachedReader) ReadAt(b []byte, offset int64) (int, error) {
	n, err := r.File.ReadAt(b, offset)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// image is a new program: memory, and a thread that begins there.
type image struct {
	space  *addressSpace
	thread Thread
	path   string
}

// load prepares a program. Errors: those of execve(2).
func (p *Process) load(files *posix.Process, dirfd int, path string, args, env []string) (*image, error) {
	o := &opener{process: files, files: p.system.files}
	first := true
	program, err := exec.Resolve(path, args, func(path string) (exec.File, error) {
		at := linux.AT_FDCWD
		if first {
			at, first = dirfd, false
		}
		return o.open(at, path)
	})
	if err != nil {
		return nil, err
	}
	real := o.path
	c := files.Credentials()
	plan, err := exec.Make(exec.Request{
		Path: path, Argv: program.Argv, Envp: env, File: program.File, Random: random, Randomise: true,
		Open:       func(path string) (exec.File, error) { return o.open(linux.AT_FDCWD, path) },
		StackLimit: p.limits[linux.RLIMIT_STACK].Cur, Machine: p.system.config.Auxiliary,
		Identity: exec.Identity{UID: uint32(c.UID), EUID: uint32(c.UID), GID: uint32(c.GID), EGID: uint32(c.GID)},
	})
	if err != nil {
		return nil, err
	}
	space, err := p.newAddressSpace(plan.Layout)
	if err != nil {
		return nil, linux.ENOMEM
	}
	if err := plan.Apply(space.Map); err != nil {
		space.leave()
		return nil, err
	}
	thread, err := space.NewThread()
	if err != nil {
		space.leave()
		return nil, linux.ENOMEM
	}
	thread.Registers().IP, thread.Registers().SP = plan.Entry, plan.StackPointer
	return &image{space, thread, real}, nil
}

// first makes the first task of a process that another program starts.
func (p *Process) first(q Program) (*Task, error) {
	files, errno := q.Process.Fork(int32(p.node.PID), 0)
	if errno != 0 {
		return nil, errno
	}
	i, err := p.load(files, linux.AT_FDCWD, q.Path, q.Args, q.Env)
	if err != nil {
		files.CloseAll()
		return nil, err
	}
	files.CloseOnExec()
	p.posix, p.path = files, i.path
	p.space.Store(i.space)
	var signals *signal.Thread
	p.signals, signals = signal.NewProcess()
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	t := p.newTask(p.node.PID, i.thread, signals, files)
	t.name = base(i.path)
	t.altStack.Flags = linux.SS_DISABLE
	return t, nil
}

// base returns the name of a task after execve: the last part of a path, at most 15 bytes.
func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			path = path[i+1:]
			break
		}
	}
	return path[:min(len(path), 15)]
}

// strings reads an array of pointers to strings. Errors: EFAULT, E2BIG.
func (t *Task) strings(addr uint64) ([]string, linux.Errno) {
	const most, longest = 1 << 17, 128 << 10 // one more byte than execve accepts
	var all []string
	for i := uint64(0); addr != 0; i++ {
		at, errno := t.caller.Memory.Pointer(addr + i*8)
		switch {
		case errno != 0:
			return nil, errno
		case at == 0:
			return all, 0
		case len(all) >= most:
			return nil, linux.E2BIG
		}
		s, errno := t.caller.Memory.String(at, longest)
		if errno == linux.ENAMETOOLONG {
			errno = linux.E2BIG
		}
		if errno != 0 {
			return nil, errno
		}
		all = append(all, s)
	}
	return all, 0
}

// execve replaces the program of the process. Other threads end first.
func (t *Task) execve(dirfd int, pathAt, argvAt, envpAt uint64, flags int) (uint64, linux.Errno) {
	const emptyPath, noFollow = 0x1000, 0x100
	if flags&^(emptyPath|noFollow) != 0 {
		return 0, linux.EINVAL
	}
	path, errno := t.caller.Memory.String(pathAt, 4096)
	if errno != 0 {
		return 0, errno
	}
	if path == "" && flags&emptyPath == 0 {
		return 0, linux.ENOENT
	}
	args, errno := t.strings(argvAt)
	if errno != 0 {
		return 0, errno
	}
	env, errno := t.strings(envpAt)
	if errno != 0 {
		return 0, errno
	}
	i, err := t.process.load(t.caller.Process, dirfd, path, args, env)
	if err != nil {
		return 0, errnoOf(err)
	}
	if !t.alone() {
		i.thread.Close()
		i.space.leave()
		t.leaving = true
		return 0, noResult
	}
	t.become(i)
	return 0, noResult
}

// dismissPause is the time between two looks for threads that have not left yet.
const dismissPause = time.Millisecond

// alone ends the other threads of the process and waits for them. It reports false if this thread has to end instead.
func (t *Task) alone() bool {
	p, s := t.process, t.process.system
	s.mu.Lock()
	for _, o := range p.tasks {
		if o != t {
			o.dismissed.Store(true)
			o.alert()
		}
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		left, ending := len(p.tasks), p.ending || t.dismissed.Load()
		s.mu.Unlock()
		switch {
		case ending:
			return false
		case left == 1:
			return true
		}
		t.await(nil, dismissPause)
	}
}

// become makes an image the program of the task's process, of which it is the only task.
func (t *Task) become(i *image) {
	p, s := t.process, t.process.system
	t.clearTID()
	t.leaveRobust()
	t.caller.Process.CloseOnExec()
	s.mu.Lock()
	old := p.space.Load()
	t.thread.Close()
	t.thread = i.thread
	t.signals.Exec()
	p.node.Executed = true
	p.path, t.name = i.path, base(i.path)
	if t.id != p.node.PID { // the thread takes the ID of the process (execve(2))
		delete(s.tasks, t.id)
		s.tree.Forget(t.id)
		t.id = p.node.PID
		s.tasks[t.id] = t
	}
	p.space.Store(i.space)
	p.released()
	s.mu.Unlock()
	old.leave()
	t.clearID, t.robust = 0, 0
	t.altStack = linux.SigStack{Flags: linux.SS_DISABLE}
	t.again = restart{}
}

// wait4 implements wait4(2).
func wait4(t *Task, a call.Args) (uint64, linux.Errno) {
	const known = linux.WNOHANG | linux.WUNTRACED | linux.WCONTINUED | 0xe0000000 // __WALL and the like
	options := number(a.A3)
	if uint32(options)&^known != 0 {
		return 0, linux.EINVAL
	}
	w := family.Wanted{Exited: true, Stopped: options&linux.WUNTRACED != 0, Continued: options&linux.WCONTINUED != 0}
	r, errno := t.waitFor(family.Selector(number(a.A1)), w, options&linux.WNOHANG != 0)
	if errno != 0 || r.Event == family.Nothing {
		return 0, errno
	}
	status := r.Status
	switch r.Event {
	case family.Stopped:
		status = status<<8 | 0x7f
	case family.Continued:
		status = 0xffff
	}
	if a.A2 != 0 {
		if errno := (memory{t}).setWord(a.A2, uint32(status)); errno != 0 {
			return 0, errno
		}
	}
	if a.A4 != 0 {
		if errno := t.caller.Memory.Write(a.A4, make([]byte, rusageSize)); errno != 0 {
			return 0, errno
		}
	}
	return uint64(r.PID), 0
}

// rusageSize is the size of struct rusage in bytes (getrusage(2)).
const rusageSize = 144

// waitFor waits for news of a child. Errors: ECHILD, EINTR.
func (t *Task) waitFor(of family.Selector, w family.Wanted, poll bool) (family.Report, linux.Errno) {
	p, s := t.process, t.process.system
	for {
		s.mu.Lock()
		r, err := s.tree.Wait(p.node, of, w)
		news := p.news
		s.mu.Unlock()
		if err != nil || r.Event != family.Nothing || poll {
			return r, errnoOf(err)
		}
		if errno := t.await(news, forever); errno != 0 {
			return r, errno
		}
	}
}

// waitid implements waitid(2).
func waitid(t *Task, a call.Args) (uint64, linux.Errno) {
	const any, sizeofInfo = -1, 128
	options := number(a.A4)
	of := family.Selector(number(a.A2))
	switch number(a.A1) {
	case linux.P_ALL:
		of = any
	case linux.P_PID:
		if of <= 0 {
			return 0, linux.EINVAL
		}
	case linux.P_PGID:
		if of < 0 {
			return 0, linux.EINVAL
		}
		of = -of
	default:
		return 0, linux.EINVAL
	}
	w := family.Wanted{
		Exited: options&linux.WEXITED != 0, Stopped: options&linux.WSTOPPED != 0,
		Continued: options&linux.WCONTINUED != 0, Keep: options&linux.WNOWAIT != 0,
	}
	if !w.Exited && !w.Stopped && !w.Continued {
		return 0, linux.EINVAL
	}
	r, errno := t.waitFor(of, w, options&linux.WNOHANG != 0)
	if errno != 0 {
		return 0, errno
	}
	return 0, t.put(a.A3, sizeofInfo, func(b []byte) {
		if r.Event == family.Nothing {
			return
		}
		i := signal.Info{Signal: signal.Child, PID: int32(r.PID), Status: r.Status}
		switch r.Event {
		case family.Stopped:
			i.Code = childStopped
		case family.Continued:
			i.Code, i.Status = childContinued, int32(signal.Continue)
		default:
			if i.Code = childCode(r.Status); i.Code == childExited {
				i.Status >>= 8
			} else {
				i.Status &= 0x7f
			}
		}
		putInfo(b, i)
	})
}

// clearTID clears the word of set_tid_address(2) and wakes a waiter.
func (t *Task) clearTID() {
	if t.clearID == 0 {
		return
	}
	m := memory{t}
	if m.setWord(t.clearID, 0) == 0 {
		t.wakeAt(t.clearID)
	}
}
