package task

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"loam/exec"
	"loam/exec/vdso"
	"loam/fs"
	"loam/mem"
	"loam/mem/cache"
	"loam/posix"
	"loam/posix/credential"
	"loam/task/account"
	"loam/task/core"
	"loam/task/family"
	"loam/task/futexcall"
	"loam/task/ipc"
	"loam/task/mapped"
	"loam/task/shortage"
)

// Config describes a System to New.
type Config struct {
	Machine Machine
	// Auxiliary describes the processor to programs (getauxval(3)).
	Auxiliary exec.Machine
	// Started is the time of the start for times(2) and CLOCK_BOOTTIME.
	Started time.Time
	// Monotonic returns the time of CLOCK_MONOTONIC; nil: the time since Started.
	Monotonic func() time.Duration
	// ClockPage is a page in which the kernel keeps these clocks as vdso.Data; 0: processes get no vDSO.
	ClockPage mem.Page
	// Heap is the memory of the kernel's heap; the zero value: it has no limit.
	Heap shortage.Memory
	// CPUs is the number of processors, for sched_getaffinity(2).
	CPUs int
}

// System is the set of all Linux processes of a machine.
type System struct {
	Blocks  mem.Blocks // policy and statistics of pages of 2 MiB
	config  Config
	memory  mem.Memory
	account mem.Account
	cache   *cache.Cache
	files   *mapped.Files
	vdso    exec.VDSO

	mu        sync.Mutex // guards the state of all processes: see the package comment
	tree      *family.Tree
	root      *family.Process
	mounts    *fs.Tree // first mount namespace: that of process 1; nil before the first process
	processes map[family.PID]*Process
	zombies   map[family.PID]*Process // processes that have ended and that no parent has waited for
	tasks     map[family.PID]*Task
	forks     uint64        // number of processes and threads created since the start of the system
	ended     account.Usage // resources used by processes that have ended
	load      account.Load
	killed    atomic.Int64 // number of processes that were ended because memory had run out
	futexes   *futexcall.Objects
	ipc       *ipc.Objects
	cores     core.Settings
	physical  func() (total, free uint64) // Figures.Memory, which MachineFiles sets before the first process
	short     *atomic.Bool                // the kernel's heap needs memory: see admit
	guard     *shortage.Guard
}

// New returns a system without processes. The program that calls New counts as process 1: orphans become
// its children, and are reaped without a wait.
func New(c Config) *System {
	s := &System{
		config: c, memory: c.Machine.Memory(), account: mem.Account{Total: c.Machine.Pages()},
		physical:  func() (uint64, uint64) { return uint64(c.Machine.Pages()) * mem.PageSize, 0 },
		processes: map[family.PID]*Process{}, tasks: map[family.PID]*Task{}, zombies: map[family.PID]*Process{},
	}
	s.futexes = futexcall.New(s.futexThread)
	s.ipc = ipc.New(s.memory, c.Machine.Pages())
	s.tree, s.root = family.New()
	s.root.NoZombies = true
	// The limits are those of Linux: 10 % for dirty_background_ratio, 20 % for dirty_ratio.
	s.cache = cache.New(s.memory, cache.Limits{Background: s.account.Total / 10, Dirty: s.account.Total / 5})
	s.files = mapped.New(s.cache, s.memory)
	s.guard, s.short = shortage.New(c.Heap, s.cache.Free, s.candidates, s.account.Total)
	if c.ClockPage != 0 {
		code := s.cache.NewMemory(vdso.Image(), nil)
		code.SetLabel(mem.Label{Path: "[vdso]"})
		s.vdso = exec.VDSO{Data: mem.NewFixed(mem.Label{Path: "[vvar]"}, c.ClockPage), Code: code, DataPages: 1, CodePages: 1}
	}
	return s
}

// Program is a program to start.
type Program struct {
	Path      string // absolute, or relative to the working directory of Process
	Args, Env []string
	// Streams are descriptors of Process that become descriptors 0, 1 and so on of the new process.
	Streams []int
	// Terminal is set if stream 0 is a terminal. The new process then leads a session, and this terminal is its
	// controlling terminal.
	Terminal bool
	// Process has the descriptors, the working directory and the credentials. The new process gets copies.
	Process *posix.Process
	// Credentials are the credentials of the new process; nil: the ones in Process.
	Credentials *credential.Set
}

// undo removes a process that has not run. Its parent may have begun to wait for it.
func (s *System) undo(node *family.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree.Undo(node)
	if parent := s.processes[node.Parent()]; parent != nil {
		parent.wakeWaiters()
	}
}

// Start starts a program as a new process. Errors: those of execve(2).
func (s *System) Start(q Program) (*Process, error) {
	q.Process.SetGroups(groups{s})
	s.mu.Lock()
	s.mounts = q.Process.View().Tree
	node, err := s.tree.Fork(s.root, false)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	node.NoZombies = false // a child of process 1 leaves no zombie
	p := newProcess(s, node)
	t, err := p.first(q)
	if err != nil {
		s.undo(node)
		return nil, err
	}
	s.mu.Lock()
	s.processes[node.PID] = p
	s.forks++
	s.mu.Unlock()
	go t.loop()
	return p, nil
}

// WriteBack writes changed pages of mapped files back until the context ends.
func (s *System) WriteBack(ctx context.Context) {
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
			next = s.cache.Step(time.Now())
		}
	}
}

// random returns 64 random bits.
func random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// monotonic returns the time of CLOCK_MONOTONIC.
func (s *System) monotonic() time.Duration {
	if s.config.Monotonic != nil {
		return s.config.Monotonic()
	}
	return time.Since(s.config.Started)
}

// NewContent returns a content for a file in memory (fs.Contents).
func (s *System) NewContent(base []byte, charge func(pages int64) error) fs.Content {
	return s.cache.NewMemory(base, charge)
}
