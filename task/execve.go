package task

import (
	"loam/abi/linux"
	"loam/exec"
	"loam/fs"
	"loam/mem"
	"loam/posix"
	"loam/posix/credential"
	"loam/posix/file"
	"loam/task/mapped"
	"loam/task/rseq"
	"loam/task/schedule"
	"loam/task/signal"
	"loam/task/trace"
)

// executed describes the executable of a process. It does not change while the process runs it.
type executed struct {
	path   string // path of the file; for a script, the path of its interpreter
	place  fs.Place
	places exec.Places
}

// image is a new program that execve has loaded: its memory, a thread that begins in the memory, and its credentials.
type image struct {
	space   *addressSpace
	thread  Thread
	name    string // name of the thread
	program executed
	creds   credential.Set
	secure  bool // value of AT_SECURE in the auxiliary vector
	dumps   bool // the process is dumpable
}

// noRandomise is the flag of personality(2) that a debugger sets: addresses are the same each time.
const noRandomise = 0x0040000

// load prepares a program for a caller with credentials. Errors: those of execve(2).
func (p *Process) load(files *posix.Process, caller *credential.Set, dirfd int, path string, args, env []string) (*image, error) {
	o := mapped.NewOpener(p.system.files, files)
	defer o.Release()
	first := true
	name := exec.NameOf(dirfd, path)
	program, err := exec.Resolve(name, args, func(file string) (exec.File, error) {
		if first {
			first = false
			return o.Open(dirfd, path)
		}
		return o.Open(linux.AT_FDCWD, file)
	})
	if err != nil {
		return nil, err
	}
	i := &image{name: exec.TaskName(name), program: executed{path: o.Last().Path, place: o.Last().Place}}
	var errno linux.Errno
	gives := mapped.Privileges(o.Last())
	p.system.mu.Lock()
	if trace.Unsafe(traceProcess{p}) {
		gives = credential.File{}
	}
	p.system.mu.Unlock()
	if i.creds, i.secure, errno = caller.Exec(gives); errno != 0 {
		return nil, errno
	}
	plan, err := exec.Make(exec.Request{
		Path: name, Argv: program.Argv, Envp: env, File: program.File, Random: random, Randomise: p.persona.Load()&noRandomise == 0,
		Open:       func(path string) (exec.File, error) { return o.Open(linux.AT_FDCWD, path) },
		StackLimit: p.limit(linux.RLIMIT_STACK), Machine: p.system.config.Auxiliary,
		VDSO:     p.system.vdso,
		Identity: exec.Identity{UID: i.creds.UID, EUID: i.creds.EUID, GID: i.creds.GID, EGID: i.creds.EGID, Secure: i.secure},
	})
	if err != nil {
		return nil, err
	}
	var hardening mem.Hardening
	if old := p.space.Load(); old != nil {
		hardening = old.Hardening().Inherited()
	}
	if hardening != 0 && plan.WritesCode() {
		return nil, linux.EACCES
	}
	space, err := p.newAddressSpace(plan.Layout, &i.creds)
	if err != nil {
		return nil, linux.ENOMEM
	}
	if err := plan.Apply(space.Map); err != nil {
		space.leave()
		return nil, err
	}
	space.Harden(hardening)
	thread, err := space.NewThread()
	if err != nil {
		space.leave()
		return nil, linux.ENOMEM
	}
	i.dumps = !i.secure && i.creds.EUID == i.creds.UID && i.creds.EGID == i.creds.GID && !o.Hidden()
	thread.Registers().IP, thread.Registers().SP = plan.Entry, plan.StackPointer
	i.space, i.thread, i.program.places = space, thread, plan.Places
	return i, nil
}

// first loads the program of a process that does not come from fork(2) (System.Start), and returns the process's first task.
func (p *Process) first(q Program) (*Task, error) {
	files := q.Process.Fork(int32(p.node.PID), 0)
	files.SetOwner(p.ref, p.sendTimer, p.cpuTime)
	for to, fd := range q.Streams {
		if _, errno := files.Dup3(fd, to, 0, true); errno != 0 {
			files.CloseAll()
			return nil, errno
		}
	}
	creds := q.Credentials
	if creds == nil {
		creds = q.Process.Identity()
	}
	files = files.Task(nil)
	files.SetIdentity(int32(p.node.PID), *creds, func(bool) {})
	i, err := p.load(files, creds, linux.AT_FDCWD, q.Path, q.Args, q.Env)
	if err != nil {
		files.CloseAll()
		return nil, err
	}
	files = files.Exec()
	p.posix, p.exe = files, i.program
	p.applyLimits()
	p.dumpable.Store(i.dumps)
	p.space.Store(i.space)
	var signals *signal.Thread
	p.signals, signals = signal.NewProcess()
	p.system.mu.Lock()
	t := p.newTask(p.node.PID, i.thread, signals, files, &i.creds)
	p.system.mu.Unlock()
	t.setComm(i.name)
	t.traits.Slack = schedule.DefaultSlack
	if q.Terminal {
		if errno := t.attach(); errno != 0 {
			return nil, errno
		}
	}
	return t, nil
}

// strings reads an array of pointers to strings. Errors: EFAULT, E2BIG.
func (t *Task) strings(addr uint64) ([]string, linux.Errno) {
	const most, longest = 1 << 17, 128 << 10 // longest is one byte more than execve accepts in a string
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
	if flags&noFollow != 0 {
		st, errno := t.caller.Process.StatAt(dirfd, path, linux.AT_SYMLINK_NOFOLLOW|flags&emptyPath)
		if errno == 0 && st.Mode.Type() == fs.Symlink {
			errno = linux.ELOOP
		}
		if errno != 0 {
			return 0, errno
		}
	}
	args, errno := t.strings(argvAt)
	if errno != 0 {
		return 0, errno
	}
	env, errno := t.strings(envpAt)
	if errno != 0 {
		return 0, errno
	}
	if t.process.exceeds() {
		return 0, linux.EAGAIN
	}
	i, err := t.process.load(t.caller.Process, t.creds(), dirfd, path, args, env)
	if err != nil {
		return 0, file.ToErrno(err)
	}
	if !t.alone() {
		i.thread.Close()
		i.space.leave()
		t.leaving = true
		return 0, noResult
	}
	former := uint64(t.id)
	t.become(i)
	trace.Exec(traceTask{t}, former)
	return 0, noResult
}

// alone ends the other threads of the process and waits for their end. It returns false if this thread must end instead,
// because another thread calls execve or the process ends.
func (t *Task) alone() bool {
	p, s := t.process, t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ending || t.dismissed.Load() {
		return false
	}
	for _, o := range p.tasks {
		if o != t {
			o.dismissed.Store(true)
			o.alert()
		}
	}
	for len(p.tasks) > 1 && !p.ending && !t.dismissed.Load() {
		p.alone = make(chan struct{})
		alone := p.alone
		s.mu.Unlock()
		t.await(alone, forever)
		s.mu.Lock()
	}
	return !p.ending && !t.dismissed.Load()
}

// become replaces the program of the task's process by an image. The process must have no other task.
func (t *Task) become(i *image) {
	p, s := t.process, t.process.system
	p.system.futexes.Leave(callTask{t}, false)
	t.clearTID()
	locked(t, func() (uint64, linux.Errno) { p.node.ExitSignal = linux.SIGCHLD; return 0, 0 }) // before descriptors are closed, as on Linux
	files := p.posix.Exec()
	if i.secure {
		p.persona.Store(0)
	}
	if i.secure || i.creds.MorePrivileged(t.creds()) {
		p.deathSignal.Store(0)
	}
	t.leaveMemory()
	t.sample()
	t.charge()
	t.faultsBefore = t.usage.Minor.Load()
	s.mu.Lock()
	p.dumpable.Store(i.dumps)
	p.posix = files
	old := p.space.Load()
	t.thread.Close()
	t.use(i.thread)
	t.signals.Exec()
	p.node.Executed = true
	p.node.Executions++
	p.exe = i.program
	t.setComm(i.name)
	trace.NewProgram(traceTask{t})
	if t.id != p.node.PID { // the thread takes the ID of the process (execve(2))
		delete(s.tasks, t.id)
		s.tree.Forget(t.id)
		trace.Replaced(traceProcess{p})
		t.id = p.node.PID
		s.tasks[t.id] = t
	}
	t.callAs(files, &i.creds)
	p.space.Store(i.space)
	p.released()
	s.mu.Unlock()
	old.leave()
	t.clearID, t.rseq = 0, rseq.Registration{}
	t.altStack = noAltStack
	t.again = trace.Again{}
}
