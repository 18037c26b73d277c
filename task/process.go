package task

import (
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix"
	"loam/posix/credential"
	"loam/posix/file"
	"loam/task/account"
	"loam/task/core"
	"loam/task/family"
	"loam/task/limit"
	"loam/task/signal"
	"loam/task/trace"
)

// Process is the state that the threads of a process share. System.mu guards the fields without another comment.
type Process struct {
	system *System
	node   *family.Process
	space  atomic.Pointer[addressSpace]
	posix  *posix.Process
	host   *Host // the program in ring 0; nil for a Linux program

	signals *signal.Process
	tasks   []*Task
	limits  limit.Set

	ending  bool // all threads end, with the wait status in the field status
	status  int32
	stopped bool
	resumed chan struct{} // closed by SIGCONT or the end; nil unless stopped
	// stopSignal is the signal of the newest stop.
	stopSignal signal.Number
	forker     family.PID // the thread that has created the process; 0: none
	links      trace.ProcessLinks
	news       chan struct{} // closed and replaced when a child has ended, stopped or continued
	expects    chan struct{} // closed when a vfork parent may continue; nil otherwise
	alone      chan struct{} // closed when one thread is left; nil if no thread waits for that (execve)
	alarm      account.Alarm
	stops      chan struct{} // receives when the process has been stopped: see the method Stopped

	past, children   account.Usage // usage of the threads that have ended, and of the children that have ended (with the usage of their own children)
	virtual, profile account.Timer // timers of setitimer(2): ITIMER_VIRTUAL and ITIMER_PROF
	warned           uint64        // seconds of CPU time before which SIGXCPU is not sent again
	timed            atomic.Bool   // a timer of CPU time runs: see expire

	ref *file.ProcessRef // names the process in pidfds; status is final after its end

	exe executed // the executable that the process runs

	lastCreds   *credential.Set // credentials of the last thread that has ended; see creds
	dumpable    atomic.Bool     // PR_SET_DUMPABLE: users other than root may inspect the process
	deathSignal atomic.Int32    // PR_SET_PDEATHSIG: the signal at the end of the parent; 0: none
	smallPages  atomic.Bool     // PR_SET_THP_DISABLE: no huge pages
	loginUser   atomic.Uint32   // content of /proc/PID/loginuid
	started     time.Duration   // time of the start of the process, since the start of the machine
	lastName    string          // name of the last thread that has ended
	// killPreference is oom_score_adj of /proc/PID: which process is ended when memory runs out.
	killPreference atomic.Int32
	persona        atomic.Uint32 // value of personality(2)
	dump           *core.Dump    // the core dump that a thread prepares or saves; nil if none does
	exceeded       bool          // the user of the process has more than RLIMIT_NPROC threads: execve fails

	watchers []*func() // called when a signal has been sent: see WatchSignals
}

// addressSpace is memory that processes may share until one of them calls execve (vfork).
type addressSpace struct {
	Space
	*mem.Map
	users    atomic.Int32
	barriers atomic.Uint32 // commands of membarrier(2) for which the processes are registered
}

func newProcess(s *System, node *family.Process) *Process {
	p := &Process{system: s, node: node, news: make(chan struct{}), ref: file.NewProcessRef(int(node.PID)), started: s.monotonic()}
	p.loginUser.Store(noLogin)
	p.limits = limit.Default(s.config.Machine.Pages())
	return p
}

// PID returns the process ID.
func (p *Process) PID() int { return int(p.node.PID) }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.ref.Done() }

// Status returns the status as wait4(2) reports it, after Done.
func (p *Process) Status() int32 {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	return p.status
}

// Signal sends a signal to the process, as kill(2) by process 1.
func (p *Process) Signal(n int) {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	p.send(nil, signal.Info{Signal: signal.Number(n), Code: signal.CodeUser})
}

// newAddressSpace returns empty memory with one user, for a process with credentials c.
func (p *Process) newAddressSpace(layout mem.Layout, c *credential.Set) (*addressSpace, error) {
	tables, err := p.system.config.Machine.NewSpace()
	if err != nil {
		return nil, err
	}
	p.system.mu.Lock()
	limits := p.memoryLimits(c)
	p.system.mu.Unlock()
	a := &addressSpace{Space: tables, Map: mem.New(mem.Config{
		Memory: p.system.memory, Tables: tables, Account: &p.system.account, Layout: layout, Limits: limits, Blocks: &p.system.Blocks, SmallPages: p.smallPages.Load(),
	})}
	a.users.Store(1)
	return a, nil
}

// memoryLimits returns the limits of memory for a process with credentials c. The caller holds System.mu.
func (p *Process) memoryLimits(c *credential.Set) mem.Limits {
	return mem.Limits{
		AS: p.limits[linux.RLIMIT_AS].Cur, Data: p.limits[linux.RLIMIT_DATA].Cur,
		Stack: p.limits[linux.RLIMIT_STACK].Cur, Memlock: p.limits[linux.RLIMIT_MEMLOCK].Cur,
		LockAny: c.Has(linux.CAP_IPC_LOCK),
	}
}

// borrow adds a use of the memory. It returns false if the memory has been freed.
func (a *addressSpace) borrow() bool {
	for n := a.users.Load(); n > 0; n = a.users.Load() {
		if a.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// lend returns the memory, and a function that ends its use. It returns nil after the memory has been freed.
func (a *addressSpace) lend() (*mem.Map, func()) {
	if !a.borrow() {
		a = nil
	}
	return a.lent()
}

// lent returns borrowed memory, which may be nil, and a function that ends its use.
func (a *addressSpace) lent() (*mem.Map, func()) {
	if a == nil {
		return nil, nil
	}
	return a.Map, a.leave
}

// leave ends one use of the memory, and frees the memory if it was the last use.
func (a *addressSpace) leave() {
	if a.users.Add(-1) == 0 {
		a.Map.Destroy()
		a.Space.Close()
	}
}

// end makes all tasks of the process end. The caller holds System.mu.
func (p *Process) end(status int32) {
	if p.ending {
		return
	}
	p.ending, p.status = true, status
	p.resume()
	for _, t := range p.tasks {
		t.alert()
	}
}

// resume lets the tasks of a stopped process continue. The caller holds System.mu.
func (p *Process) resume() {
	if p.stopped {
		p.stopped = false
		close(p.resumed)
		trace.Unjoin(traceProcess{p})
	}
}

// released lets a vfork parent continue: the child has memory of its own, or has ended. The caller holds System.mu.
func (p *Process) released() {
	if p.expects != nil {
		close(p.expects)
		p.expects = nil
	}
}

// ended completes the end of a process whose last task has left. The caller holds System.mu.
func (p *Process) ended() {
	s := p.system
	p.alarm.Stop()
	s.ipc.Leave(int32(p.node.PID))
	p.posix.Timers().Drop()
	p.released()
	delete(s.processes, p.node.PID)
	s.ended.Add(p.used())
	s.zombies[p.node.PID] = p
	p.node.Held = trace.EndProcess(traceProcess{p})
	e := s.tree.Exit(p.node, p.status)
	s.forget(p.node.PID)
	for _, o := range e.Orphans {
		zombie, reaper := s.zombies[o.PID], s.processes[o.Parent()]
		if zombie != nil && reaper != nil && !o.Held {
			reaper.childNews(zombie, signal.ChildCode(zombie.status), zombie.status)
		}
		s.forget(o.PID)
		if child := s.processes[o.PID]; child != nil && child.deathSignal.Load() != 0 {
			child.send(nil, signal.Info{Signal: signal.Number(child.deathSignal.Load()), Code: signal.CodeUser, PID: int32(p.node.PID), UID: p.lastCreds.UID})
		}
	}
	if p.node.Held {
		trace.NotifyEnd(traceProcess{p})
	} else if parent := s.processes[pidOf(e.Notify)]; parent != nil {
		parent.childNews(p, signal.ChildCode(p.status), p.status)
	}
	for _, group := range e.Hangup {
		s.sendGroup(group, signal.Info{Signal: linux.SIGHUP, Code: signal.CodeKernel})
		s.sendGroup(group, signal.Info{Signal: linux.SIGCONT, Code: signal.CodeKernel})
	}
	p.ref.End()
}

func pidOf(p *family.Process) family.PID {
	if p == nil {
		return 0
	}
	return p.PID
}

// childNews notifies a process that a child has ended, stopped or continued: by SIGCHLD, and to threads that wait. The
// caller holds System.mu.
func (p *Process) childNews(child *Process, code, status int32) {
	p.wakeWaiters()
	stopped := code == signal.ChildStopped || code == signal.ChildContinued
	if code == signal.ChildStopped && trace.Traces(traceProcess{p}, traceProcess{child}) {
		child.node.Hush()
		return
	}
	if stopped && p.signals.Action(signal.Child).Flags&signal.NoChildStop != 0 {
		return
	}
	if code == signal.ChildExited {
		status >>= 8
	} else if !stopped {
		status &= 0x7f
	}
	n := signal.Child
	if !stopped {
		n = signal.Number(child.node.EndSignal())
	}
	if n == 0 {
		return
	}
	used := child.used()
	p.send(nil, signal.Info{
		Signal: n, Code: code, PID: int32(child.node.PID), Status: status, UID: child.creds().UID,
		User: uint64(used.User.Load() / int64(tick)), System: uint64(used.System.Load() / int64(tick)),
	})
}

// wakeWaiters wakes the threads of p that wait for children; they check their condition again. The caller holds System.mu.
func (p *Process) wakeWaiters() {
	close(p.news)
	p.news = make(chan struct{})
}
