package task

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loam/arch/amd64"
	"loam/mem"
	"loam/mem/memtest"
)

// simulated is a Machine whose threads run Go functions: they make system calls and access memory through simulated
// page tables.
type simulated struct {
	t      *testing.T
	memory *memtest.Memory
	// programs are the functions that a thread can run, by the value of IP at its start; after clone(2), by R15.
	programs []func(u *user)
	mu       sync.Mutex
	open     int    // number of spaces and threads that are not closed
	forking  func() // called by NewSpace, if not nil
	cloning  func() // called by NewThread, if not nil
	// swapping is called by CompareAndSwap with the address of the word, if not nil.
	swapping func(addr uint64)

	barriers atomic.Int32 // calls of Barrier

	started time.Time
	spent   atomic.Int64 // CPU time that programs have used, in nanoseconds
}

// clock is the clock of CPU time: fake time, plus the time that programs use by spend.
func (m *simulated) clock() int64 { return int64(time.Since(m.started)) + m.spent.Load() }

// spend adds CPU time in ring 3 to the thread. The task is interrupted at once, so timers of CPU time expire and
// handlers of signals run.
func (u *user) spend(d time.Duration) {
	u.space.machine.spent.Add(int64(d))
	u.stop(Interrupted)
	for u.frame.IP >= handlersAt && u.frame.IP < restorerAt {
		u.handle(u.frame.IP - handlersAt)
	}
}

func (m *simulated) Memory() mem.Memory { return m.memory }
func (m *simulated) Pages() int64       { return 1 << 10 }

func (m *simulated) count(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += n
}

func (m *simulated) NewSpace() (Space, error) {
	m.count(1)
	if m.forking != nil {
		m.forking()
	}
	return &simulatedSpace{memtest.NewTables(m.memory), m}, nil
}

type simulatedSpace struct {
	*memtest.Tables
	machine *simulated
}

func (s *simulatedSpace) Read(addr uint64, b []byte) int {
	return s.each(addr, b, mem.Load)
}

func (s *simulatedSpace) Write(addr uint64, b []byte) int {
	return s.each(addr, b, mem.Store)
}

func (s *simulatedSpace) Load(addr uint64) (value uint32, ok bool) {
	ok = s.Access(addr, mem.Load, func(page []byte) { value = binary.LittleEndian.Uint32(page[addr%mem.PageSize:]) })
	return value, ok
}

func (s *simulatedSpace) CompareAndSwap(addr uint64, old, value uint32) (found uint32, ok bool) {
	if s.machine.swapping != nil {
		s.machine.swapping(addr)
	}
	ok = s.Access(addr, mem.Store, func(page []byte) {
		word := page[addr%mem.PageSize:][:4]
		if found = binary.LittleEndian.Uint32(word); found == old {
			binary.LittleEndian.PutUint32(word, value)
		}
	})
	return found, ok
}

// each copies b to or from memory page by page, and stops at a page that is not accessible. It returns the number of
// bytes copied.
func (s *simulatedSpace) each(addr uint64, b []byte, access mem.Access) (done int) {
	for done < len(b) {
		at := addr + uint64(done)
		n := min(len(b)-done, int(mem.PageSize-at%mem.PageSize))
		ok := s.Access(at, access, func(page []byte) {
			if part := page[at%mem.PageSize:][:n]; access == mem.Store {
				copy(part, b[done:])
			} else {
				copy(b[done:done+n], part)
			}
		})
		if !ok {
			break
		}
		done += n
	}
	return done
}

func (s *simulatedSpace) Barrier() { s.machine.barriers.Add(1) }

func (s *simulatedSpace) Close() { s.machine.count(-1) }

func (s *simulatedSpace) NewThread() (Thread, error) {
	if s.machine.cloning != nil {
		s.machine.cloning()
	}
	s.machine.count(1)
	return &simulatedThread{space: s, since: s.machine.clock(), reasons: make(chan Reason), resume: make(chan struct{}), kicked: make(chan struct{}, 1)}, nil
}

// simulatedThread hands control between the goroutine of a task and the goroutine of a program.
type simulatedThread struct {
	space   *simulatedSpace
	frame   amd64.Frame
	fs, gs  uint64
	address uint64
	vectors [1024]byte

	debug, debugStatus uint64 // DR7 and DR6
	watched            bool
	bound              atomic.Uint64 // argument of the last Bind
	rests              atomic.Int32  // calls of Rest

	since, inside int64 // the clock at the last call of Spent, and the time in ring 3 since then

	started bool
	reasons chan Reason   // why the thread stopped: the program sends, Run receives
	resume  chan struct{} // Run sends; the program receives; closed by Close
	kicked  chan struct{} // capacity 1; Kick sends; Run receives
}

// Run lets the program run until it makes a system call, faults, is interrupted or ends.
func (t *simulatedThread) Run() Reason {
	select {
	case <-t.kicked:
		return Interrupted
	default:
	}
	if !t.started {
		t.started = true
		number := t.frame.IP - entryPoint
		if t.frame.AX == 0 && t.frame.R15 != 0 { // a child of clone
			number = t.frame.R15
		}
		go t.space.machine.programs[number](&user{t})
	} else {
		t.resume <- struct{}{}
	}
	began := t.space.machine.clock()
	r := <-t.reasons
	t.inside += t.space.machine.clock() - began
	return r
}

func (t *simulatedThread) Spent() (user, system int64) {
	now := t.space.machine.clock()
	user, system = t.inside, now-t.since-t.inside
	t.since, t.inside = now, 0
	return user, system
}

func (t *simulatedThread) Registers() *amd64.Frame { return &t.frame }
func (t *simulatedThread) Restore()                {}
func (t *simulatedThread) FaultAddress() uint64    { return t.address }
func (t *simulatedThread) Bases() (fs, gs uint64)  { return t.fs, t.gs }
func (t *simulatedThread) VectorSize() int         { return len(t.vectors) }
func (t *simulatedThread) Vectors(b []byte)        { copy(b, t.vectors[:]) }
func (t *simulatedThread) SetVectors(b []byte)     { copy(t.vectors[:], b) }

func (t *simulatedThread) Settle() {
	select {
	case <-t.kicked:
	default:
	}
}

func (t *simulatedThread) Watch(on bool) { t.watched = on }
func (t *simulatedThread) CPU() int      { return 1 }
func (t *simulatedThread) Bind(c uint64) { t.bound.Store(c) }
func (t *simulatedThread) Rest()         { t.rests.Add(1) }

func (t *simulatedThread) VectorComponents() uint64             { return 7 }
func (t *simulatedThread) SetDebug(d [4]uint64, control uint64) { t.debug = control }
func (t *simulatedThread) DebugStatus() uint64                  { return t.debugStatus }

func (t *simulatedThread) SetBases(fs, gs uint64) error {
	t.fs, t.gs = fs, gs
	return nil
}

func (t *simulatedThread) Kick() {
	select {
	case t.kicked <- struct{}{}:
	default:
	}
}

// Close ends the program's goroutine.
func (t *simulatedThread) Close() {
	close(t.resume)
	t.space.machine.count(-1)
}

// user is a program's view of its thread.
type user struct{ *simulatedThread }

// stop returns control to the task until the thread runs again.
func (u *user) stop(r Reason) {
	u.reasons <- r
	if _, ok := <-u.resume; !ok {
		runtime.Goexit() // the thread has ended
	}
}

// Addresses of the simulated programs.
const (
	textAt     = 0x40_0000
	entryPoint = textAt + 0x100 // entry point of program 0; add n for program n
	callAt     = textAt + 0x800 // address of the SYSCALL instruction
	handlersAt = textAt + 0x900 // address of a handler that is program 0; add n for program n
	restorerAt = textAt + 0xa00 // address to which handlers return
	dataAt     = 0x60_0000      // writable memory
	dataSize   = 16 * mem.PageSize
	callSize   = 2
)

// call makes a system call and returns its result, as the C library would see it: negative errno values are errors.
// Handlers of signals run meanwhile.
func (u *user) call(number int, args ...uint64) int64 {
	f := &u.frame
	for i, r := range []*uint64{&f.DI, &f.SI, &f.DX, &f.R10, &f.R8, &f.R9}[:len(args)] {
		*r = args[i]
	}
	f.AX, f.IP = uint64(number), callAt+callSize
	u.stop(Call)
	for {
		switch {
		case f.IP >= handlersAt && f.IP < restorerAt:
			u.handle(f.IP - handlersAt)
		case f.IP == callAt: // the kernel has restarted the call
			f.IP += callSize
			u.stop(Call)
		default:
			return int64(f.AX)
		}
	}
}

// handle runs the signal handler with a number in machine.programs, and returns from it with rt_sigreturn(2).
func (u *user) handle(number uint64) {
	f := &u.frame
	at := f.SP
	u.space.machine.programs[number](u)
	f.SP = at + 8 // value of the stack pointer after RET has popped the return address
	f.AX, f.IP = rtSigreturn, restorerAt+callSize
	u.stop(Call)
}

// store writes memory, and faults as a processor would. It reports false after a signal that a handler has handled.
func (u *user) store(addr uint64, b []byte) bool {
	const write = 2 // bit of the error code of a page fault
	return u.access(addr, b, write, u.space.Write)
}

// access copies bytes by the function move. If that function ends early, the program
// faults at that address with the error code.
func (u *user) access(addr uint64, b []byte, code uint64, move func(uint64, []byte) int) bool {
	f := &u.frame
	for done := move(addr, b); done < len(b); done += move(addr+uint64(done), b[done:]) {
		u.address, f.Vector, f.Code, f.IP = addr+uint64(done), amd64.VectorPage, code, textAt
		u.stop(Fault)
		if f.IP != textAt {
			for f.IP >= handlersAt && f.IP < restorerAt {
				u.handle(f.IP - handlersAt)
			}
			return false
		}
	}
	return true
}

func (u *user) store32(addr uint64, v uint32) {
	u.store(addr, binary.LittleEndian.AppendUint32(nil, v))
}

// load32 reads a word of memory.
func (u *user) load32(addr uint64) uint32 {
	var b [4]byte
	u.access(addr, b[:], 0, u.space.Read)
	return binary.LittleEndian.Uint32(b[:])
}

// text stores a string and returns its address.
func (u *user) text(addr uint64, s string) uint64 {
	u.store(addr, append([]byte(s), 0))
	return addr
}

// fork creates a process that runs another program.
func (u *user) fork(number uint64) int64 {
	u.frame.R15 = number
	return u.call(forkNumber)
}

// elf returns an executable file that starts a program.
func elf(number int) []byte {
	le := binary.LittleEndian
	b := make([]byte, 64+2*56)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 2)  // ET_EXEC
	le.PutUint16(b[18:], 62) // EM_X86_64
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[24:], entryPoint+uint64(number))
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	segment := func(p []byte, flags uint32, at, file, memory uint64) {
		le.PutUint32(p, 1)
		le.PutUint32(p[4:], flags)
		le.PutUint64(p[16:], at)
		le.PutUint64(p[32:], file)
		le.PutUint64(p[40:], memory)
		le.PutUint64(p[48:], mem.PageSize)
	}
	segment(b[64:], 5, textAt, uint64(len(b)), uint64(len(b)))
	segment(b[64+56:], 6, dataAt, 0, dataSize)
	return b
}
