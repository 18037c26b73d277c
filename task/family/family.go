// Package family keeps the relations of processes: parents and children, process groups, sessions, and who may
// wait for whom (fork(2), setpgid(2), setsid(2), wait(2); POSIX.1-2017, 3.93, 11.1).
//
// It is a pure state machine: it does not wait, and takes no lock. A Tree holds all processes by number; the
// caller has one lock around it, sends the signals that results name, and wakes parents that wait.
//
// # Life of a process
//
//	Fork ─▶ running ◀─ Stop, Continue ─▶ stopped
//	           │ Exit
//	           ▼
//	         zombie ─ Wait by the parent, or no waiter ─▶ gone
//
// A number is not used again while a process, a group or a session has it.
package family

import (
	"sync/atomic"

	"loam/abi/linux"
)

// PID is the number of a process, a process group or a session.
type PID int32

// MaxPID is larger than all numbers: the largest value of kernel.pid_max on a 64-bit machine (proc(5)). There are fewer processes
// than numbers, so it also bounds the owners of a page (mem.MaxOwners).
const MaxPID PID = 4 << 20

// Process is one process.
type Process struct {
	PID, Group, Session PID
	// SubReaper makes the process the new parent of descendants whose parent has ended (PR_SET_CHILD_SUBREAPER).
	SubReaper bool
	// Executed is set if the process has called execve since fork, so that its parent cannot move it to another group.
	Executed bool
	// Supervised is set if process 1 controls the process as a job. For the question whether its group is orphaned, its
	// parent then counts as a member of another group of the same session.
	Supervised bool
	// NoZombies is set if children of the process leave no zombies: SIGCHLD is ignored, or has SA_NOCLDWAIT.
	NoZombies bool
	// Foster is set if children that the process has adopted after the end of their parent leave no zombies.
	Foster bool
	// ExitSignal is the signal at the end that clone(2) has named; 0: none. The method EndSignal returns the signal that is sent.
	ExitSignal int32
	// Creator is the thread that has created the process; 0 if another process has adopted it.
	Creator PID
	// Executions is the number of programs that the process has executed.
	Executions uint64
	// Held is set if the end of the process is not yet reported to its parent, because a tracer sees it first (ptrace(2)).
	Held bool

	parent   *Process
	parentID atomic.Int32 // PID of the parent, which any goroutine may read without the lock
	children []*Process
	zombie   bool
	adopted  bool // the process that created this one has ended
	stopped  bool
	exitsTo  uint64 // Executions of the parent when it created the process
	// news is the newest stop or continuation that no wait has reported yet; Nothing: none. The end of the
	// process is not recorded here.
	news   Event
	status int32
}

// Event is an event of a child that wait(2) reports.
type Event uint8

// Values of Event: what a parent can wait for.
const (
	Nothing Event = iota
	Exited        // the process has ended; the status is encoded as in wait4(2)
	Stopped       // the process has stopped; the status is the signal
	Continued
	// a traced thread has stopped: the status is the signal, and an event << 8 (ptrace(2)). A Tree never reports this event.
	Trapped
)

// Tree holds all processes.
type Tree struct {
	processes map[PID]*Process
	names     map[PID]int // for each number, how many times it is used as a process, as a process's group or as its session
	last      PID
	less      atomic.Int64 // MaxPID minus the setting kernel.pid_max
	init      *Process
}

// New returns a tree with process 1, which leads a group and a session of its own.
func New() (*Tree, *Process) {
	p := &Process{PID: 1, Group: 1, Session: 1}
	return &Tree{processes: map[PID]*Process{1: p}, names: map[PID]int{1: 3}, last: 1, init: p}, p
}

// Find returns a process, zombies included, or nil.
func (t *Tree) Find(pid PID) *Process { return t.processes[pid] }

// Parent returns the PID of the parent, and 0 for process 1, which has no parent. It needs no lock.
func (p *Process) Parent() PID { return PID(p.parentID.Load()) }

// Fork adds a child to a process or, for a sibling, to its parent (CLONE_PARENT). Errors: EAGAIN if no number is free.
func (t *Tree) Fork(p *Process, sibling bool) (*Process, error) {
	pid, ok := t.number()
	if !ok {
		return nil, linux.EAGAIN
	}
	parent := p
	if sibling && p.parent != nil {
		parent = p.parent
	}
	child := &Process{PID: pid, Group: p.Group, Session: p.Session, NoZombies: p.NoZombies, ExitSignal: linux.SIGCHLD, exitsTo: p.Executions, parent: parent}
	if sibling {
		child.adopted, child.ExitSignal, child.exitsTo, child.Creator = p.adopted, p.ExitSignal, p.exitsTo, p.Creator
	}
	child.parentID.Store(int32(parent.PID))
	parent.children = append(parent.children, child)
	t.processes[pid] = child
	t.name(1, child.PID, child.Group, child.Session)
	return child, nil
}

// reserved is the number at which the search starts again after MaxPID. Lower numbers are left to processes that start at
// boot.
const reserved PID = 300

// Most returns the setting kernel.pid_max: all new numbers are smaller. SetMost changes it. Any goroutine may call them.
func (t *Tree) Most() int64     { return int64(MaxPID) - t.less.Load() }
func (t *Tree) SetMost(n int64) { t.less.Store(int64(MaxPID) - n) }

// LeastMost is the smallest value of kernel.pid_max.
const LeastMost = int64(reserved) + 1

// number returns the next free number.
func (t *Tree) number() (PID, bool) {
	most := PID(t.Most())
	for range most {
		if t.last++; t.last >= most {
			t.last = reserved
		}
		if t.names[t.last] == 0 {
			return t.last, true
		}
	}
	return 0, false
}

// name adds n to the number of uses of each of the given numbers, by processes, process groups and sessions.
func (t *Tree) name(n int, numbers ...PID) {
	for _, pid := range numbers {
		if t.names[pid] += n; t.names[pid] == 0 {
			delete(t.names, pid)
		}
	}
}

// Last returns the newest number.
func (t *Tree) Last() PID { return t.last }

// Thread returns a number for another thread of a process, which Forget frees. Errors: EAGAIN if no number is free.
func (t *Tree) Thread() (PID, error) {
	id, ok := t.number()
	if !ok {
		return 0, linux.EAGAIN
	}
	t.name(1, id)
	return id, nil
}

// Forget frees the number of a thread.
func (t *Tree) Forget(id PID) { t.name(-1, id) }
