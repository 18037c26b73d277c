package kernel

import (
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// Random sequences of calls, page faults and interrupts on several CPUs, compared with a simple model:
// which pages the program has, with which rights and content; which threads wait, for what and until when; which signals
// are pending. A script of bytes selects what the threads do, and a seed selects which CPU executes.

// Sizes of the simulated program.
const (
	arenaPages   = 1024 // pages that the calls about memory use: two big pages
	modelThreads = 8    // maximum number of threads
	futexes      = 3
)

// sequence is a program that executes a script, with the model of its state.
type sequence struct {
	*machine
	script  []byte
	arena   uint64 // address of the pages
	shared  uint64 // address of the futexes, which are zero
	stacks  []uint64
	pages   map[uint64]*modelPage
	threads map[thread.ID]*modelThread
	waiters []thread.ID             // threads that wait, in the order in which they began
	stored  uint64                  // last value that was stored in a page
	done    map[*modelCPU]operation // what the call that a CPU has made does to the model
}

// operation applies a call to the model. result is its result, unless the thread waits.
type operation func(id thread.ID, result int64)

// modelPage is a mapped page of the arena.
type modelPage struct {
	prot  uint64
	value uint64
}

// modelThread is the model of a thread.
type modelThread struct {
	stack    uint64 // address of a timespec and, a few pages above it, the end of the thread's stack
	waits    bool
	key      uint64 // what the thread waits for: the address of a futex, or one of the kernel's own keys
	deadline int64
	late     int64 // result when the deadline passes
	returns  bool  // the call in which the thread waited returns result
	result   int64
	handler  bool // the thread is in its handler
	ends     bool // the thread has begun to exit
	faults   bool // the thread accesses memory that may cause a fault
	pending  signal.Set
	mask     signal.Set
}

// newSequence starts a machine whose program executes a script.
func newSequence(t testing.TB, seed uint64, cpus int, script []byte) *sequence {
	s := &sequence{
		machine: newMachine(t, cpus, seed), script: script, pages: map[uint64]*modelPage{},
		threads: map[thread.ID]*modelThread{}, done: map[*modelCPU]operation{},
	}
	p := s.cpus[0]
	const stackPages = 4
	s.shared = uint64(p.call(linux.SYS_MMAP, 0, pageSize, protRead|protWrite, mapPrivate|mapAnon))
	for range modelThreads {
		s.stacks = append(s.stacks, uint64(p.call(linux.SYS_MMAP, 0, stackPages*pageSize, protRead|protWrite, mapPrivate|mapAnon)))
	}
	s.arena = uint64(p.call(linux.SYS_MMAP, 0, arenaPages*pageSize, protNone, mapPrivate|mapAnon))
	for i := range uint64(arenaPages) {
		s.pages[s.arena+i*pageSize] = &modelPage{}
	}
	at := s.stacks[0]
	p.access(at, true)
	*p.memory(at), *p.memory(at + 8), *p.memory(at + 24) = modelHandler, 0, 1<<64-1
	for _, n := range []uint64{10, 12, uint64(signal.Segment)} {
		p.call(linux.SYS_RT_SIGACTION, n, at, 0, 8)
	}
	first := &modelThread{stack: s.takeStack()}
	frameOf(p.page()).SP = first.stack + stackPages*pageSize
	s.threads[p.cpu.current] = first
	s.program, s.served = s.turn, s.apply
	return s
}

func (s *sequence) takeStack() uint64 {
	stack := s.stacks[0]
	s.stacks = s.stacks[1:]
	return stack
}

// next returns the next byte of the script; 0 after its end.
func (s *sequence) next() uint64 {
	if len(s.script) == 0 {
		return 0
	}
	b := s.script[0]
	s.script = s.script[1:]
	return uint64(b)
}

// begin makes a call. The function do applies it to the model when the call has been served.
func (s *sequence) begin(p *modelCPU, do operation, number uint64, args ...uint64) {
	s.done[p] = do
	p.call(number, args...)
}

// expect returns an operation that checks the result of a call.
func (s *sequence) expect(what string, want int64) operation {
	return func(id thread.ID, result int64) {
		if result != want {
			s.fail("thread %d: %s returns %d, want %d", id, what, result, want)
		}
	}
}

// turn executes one step of the thread that is current on a CPU.
func (s *sequence) turn(p *modelCPU) {
	id := p.cpu.current
	th := s.threads[id]
	f := frameOf(p.page())
	switch {
	case th == nil || th.waits:
		s.fail("thread %d runs, and the model has no such thread that runs", id)
		return
	case th.handler:
		f.SP += 8
		s.begin(p, func(thread.ID, int64) { th.handler = false }, linux.SYS_RT_SIGRETURN)
		return
	}
	if len(s.script) == 0 {
		s.ticks += 50e3
		s.begin(p, s.expect("sched_yield", 0), linux.SYS_SCHED_YIELD)
		return
	}
	s.choose(p, id, th)
}

// choose executes what the script selects.
func (s *sequence) choose(p *modelCPU, id thread.ID, th *modelThread) {
	switch s.next() % 16 {
	case 0:
		s.mapFixed(p)
	case 1:
		s.unmap(p)
	case 2:
		s.protect(p)
	case 3:
		s.discard(p)
	case 4, 5:
		s.touch(p, id, th, s.place(), true)
	case 6:
		s.touch(p, id, th, s.place(), false)
	case 7:
		s.clone(p, th)
	case 8:
		s.exit(p, th)
	case 9, 10:
		s.waitFutex(p, th)
	case 11:
		s.wakeFutex(p)
	case 12:
		s.sleep(p, th)
	case 13:
		s.signal(p)
	case 14:
		s.mask(p, th)
	default:
		s.other(p, id, th)
	}
}

// place returns the address of a page of the arena.
func (s *sequence) place() uint64 { return s.arena + s.next()*4*pageSize }

// span returns a range of pages of the arena.
func (s *sequence) span() (at, size uint64) {
	at, size = s.place(), (s.next()%6+1)*pageSize
	if size == 6*pageSize {
		size = 300 * pageSize
	}
	return at, min(size, s.arena+arenaPages*pageSize-at)
}

// each calls f for each page of a range.
func (s *sequence) each(at, size uint64, f func(va uint64)) {
	for va := at; va < at+size; va += pageSize {
		f(va)
	}
}

func (s *sequence) mapFixed(p *modelCPU) {
	at, size := s.span()
	prot := []uint64{protNone, protRead, protRead | protWrite, protRead | protWrite}[s.next()%4]
	s.begin(p, func(id thread.ID, result int64) {
		s.expect("mmap", int64(at))(id, result)
		s.each(at, size, func(va uint64) { s.pages[va] = &modelPage{prot: prot} })
	}, linux.SYS_MMAP, at, size, prot, mapPrivate|mapAnon|mapFixed)
}

func (s *sequence) unmap(p *modelCPU) {
	at, size := s.span()
	s.begin(p, func(id thread.ID, result int64) {
		s.expect("munmap", 0)(id, result)
		s.each(at, size, func(va uint64) { delete(s.pages, va) })
	}, linux.SYS_MUNMAP, at, size)
}

// covered returns the result of a call that requires that a whole range is mapped.
func (s *sequence) covered(at, size uint64) (result int64) {
	s.each(at, size, func(va uint64) {
		if s.pages[va] == nil {
			result = -int64(linux.ENOMEM)
		}
	})
	return result
}

func (s *sequence) protect(p *modelCPU) {
	at, size := s.span()
	prot := []uint64{protNone, protRead, protRead | protWrite}[s.next()%3]
	s.begin(p, func(id thread.ID, result int64) {
		want := s.covered(at, size)
		s.expect("mprotect", want)(id, result)
		if want == 0 {
			s.each(at, size, func(va uint64) { s.pages[va].prot = prot })
		}
	}, linux.SYS_MPROTECT, at, size, prot)
}

func (s *sequence) discard(p *modelCPU) {
	at, size := s.span()
	const dontNeed = 4
	s.begin(p, func(id thread.ID, result int64) {
		want := s.covered(at, size)
		s.expect("madvise", want)(id, result)
		if want == 0 {
			s.each(at, size, func(va uint64) { s.pages[va].value = 0 })
		}
	}, linux.SYS_MADVISE, at, size, dontNeed)
}

// touch reads or writes a page of the arena.
func (s *sequence) touch(p *modelCPU, id thread.ID, th *modelThread, at uint64, write bool) {
	th.faults = true
	done := p.access(at, write)
	// a thread whose access was not allowed may be preempted before its handler starts
	th.faults = p.cpu.current != id && !th.handler && frameOf(s.core.threads.At(id).Page).IP == modelHandler
	if p.cpu.current != id || !done && frameOf(p.page()).IP == modelHandler && frameOf(p.page()).DI != uint64(signal.Segment) {
		return // another thread runs first, or the handler of another signal
	}
	need := uint64(protRead)
	if write {
		need = protWrite
	}
	pg := s.pages[at]
	allowed := pg != nil && pg.prot&need != 0
	if done != allowed && !(done && pg != nil && s.busy()) { // a call on another CPU that has begun to change rights may be seen early
		s.fail("access at %#x, write %v: succeeds %v, model %+v", at, write, done, pg)
	}
	switch {
	case !done || pg == nil:
	case write:
		s.stored++
		pg.value = s.stored
		*p.memory(at) = pg.value
	case *p.memory(at) != pg.value:
		s.fail("the page at %#x contains %d, want %d", at, *p.memory(at), pg.value)
	}
}

// busy reports whether a CPU is in the kernel.
func (s *sequence) busy() bool {
	return slices.ContainsFunc(s.cpus, func(p *modelCPU) bool { return p.kernel })
}

func (s *sequence) clone(p *modelCPU, th *modelThread) {
	if len(s.stacks) == 0 {
		return
	}
	stack := s.takeStack()
	s.begin(p, func(id thread.ID, result int64) {
		if result <= 0 || s.threads[thread.ID(result)] != nil {
			s.fail("thread %d: clone returns %d", id, result)
		}
		s.threads[thread.ID(result)] = &modelThread{stack: stack, mask: th.mask}
	}, linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD, stack+4*pageSize)
}

func (s *sequence) exit(p *modelCPU, th *modelThread) {
	stay := 0
	for _, other := range s.threads {
		if !other.ends {
			stay++
		}
	}
	if stay < 3 {
		return
	}
	th.ends = true
	s.begin(p, func(id thread.ID, _ int64) {
		delete(s.threads, id)
		s.stacks = append(s.stacks, th.stack)
	}, linux.SYS_EXIT)
}

// waits makes a call in which the thread waits. immediate is the result if it need not wait.
func (s *sequence) waits(p *modelCPU, th *modelThread, w modelThread, immediate []int64, number uint64, args ...uint64) {
	s.begin(p, func(id thread.ID, result int64) {
		state := s.core.threads.At(id)
		if state.State != thread.Waiting && !state.Waited {
			passed := result == w.late && int64(s.core.clock.At(s.ticks)) >= w.deadline
			if !slices.Contains(immediate, result) && !passed && !(result == -int64(linux.EINTR) && th.interrupted()) {
				s.fail("thread %d: call %d returns %d at once, want one of %d", id, number, result, immediate)
			}
			return
		}
		th.waits, th.key, th.deadline, th.late = true, w.key, w.deadline, w.late
		s.waiters = append(s.waiters, id)
	}, number, args...)
}

// interrupted reports whether a signal is or was just pending that the thread does not block.
func (th *modelThread) interrupted() bool { return th.pending&^th.mask != 0 }

// timeout stores a struct timespec for the thread. It returns its address, 0 for none, and the earliest time of the
// deadline.
func (s *sequence) timeout(p *modelCPU, id thread.ID, th *modelThread) (addr uint64, deadline int64) {
	nanos := []uint64{0, 0, 500, 20e3, 300e3, 5e6}[s.next()%6]
	if nanos == 0 {
		return 0, thread.Never
	}
	if !p.access(th.stack, true) || p.cpu.current != id {
		return 0, thread.Never
	}
	*p.memory(th.stack), *p.memory(th.stack + 8) = 0, nanos
	return th.stack, int64(s.core.clock.At(s.ticks)) + int64(nanos)
}

func (s *sequence) waitFutex(p *modelCPU, th *modelThread) {
	id := p.cpu.current
	at, value := s.shared+s.next()%futexes*4, s.next()%8/7
	timeout, deadline := s.timeout(p, id, th)
	if p.cpu.current != id || th.handler {
		return
	}
	var immediate []int64
	if value != 0 {
		immediate = []int64{-int64(linux.EAGAIN)}
	}
	s.waits(p, th, modelThread{key: at, deadline: deadline, late: -int64(linux.ETIMEDOUT)}, immediate,
		linux.SYS_FUTEX, at, futexWait, value, timeout)
}

func (s *sequence) sleep(p *modelCPU, th *modelThread) {
	id := p.cpu.current
	timeout, deadline := s.timeout(p, id, th)
	if timeout == 0 || p.cpu.current != id || th.handler {
		return
	}
	s.waits(p, th, modelThread{key: keySleep, deadline: deadline}, []int64{0}, linux.SYS_NANOSLEEP, timeout)
}

func (s *sequence) wakeFutex(p *modelCPU) {
	at, most := s.shared+s.next()%futexes*4, s.next()%4
	s.begin(p, func(id thread.ID, result int64) {
		s.expect("futex", int64(s.wake(at, int(most), 0)))(id, result)
	}, linux.SYS_FUTEX, at, futexWake, most)
}

// wake ends the wait of up to n threads with a key, and returns their number.
func (s *sequence) wake(key uint64, n int, result int64) (woken int) {
	for _, id := range slices.Clone(s.waiters) {
		if s.threads[id].key == key && woken < n {
			s.endWait(id, result)
			woken++
		}
	}
	return woken
}

// endWait ends the wait of a thread.
func (s *sequence) endWait(id thread.ID, result int64) {
	th := s.threads[id]
	th.waits, th.returns, th.result = false, true, result
	s.waiters = slices.DeleteFunc(s.waiters, func(other thread.ID) bool { return other == id })
	if s.core.threads.At(id).State == thread.Waiting {
		s.fail("thread %d still waits, and its wait ends with %d", id, result)
	}
}

func (s *sequence) signal(p *modelCPU) {
	target, n := thread.ID(s.next()%(modelThreads+2)), []signal.Number{0, 10, 12, 12}[s.next()%4]
	s.begin(p, func(id thread.ID, result int64) {
		th := s.threads[target]
		if th == nil {
			s.expect("tkill", -int64(linux.ESRCH))(id, result)
			return
		}
		s.expect("tkill", 0)(id, result)
		if n == 0 {
			return
		}
		th.pending |= signal.Of(n)
		if th.waits && th.mask&signal.Of(n) == 0 {
			s.endWait(target, -int64(linux.EINTR))
		}
	}, linux.SYS_TKILL, uint64(target), uint64(n))
}

// mask blocks or unblocks a signal.
func (s *sequence) mask(p *modelCPU, th *modelThread) {
	id, set, how := p.cpu.current, signal.Of(10)|signal.Of(12)*signal.Set(s.next()%2), s.next()%2
	if !p.access(th.stack, true) || p.cpu.current != id || th.handler {
		return
	}
	*p.memory(th.stack) = uint64(set)
	s.begin(p, func(id thread.ID, result int64) {
		s.expect("rt_sigprocmask", 0)(id, result)
		th.mask, _ = signal.Change(th.mask, int(how), set)
	}, linux.SYS_RT_SIGPROCMASK, how, th.stack, 0, 8)
}

// other makes one of the remaining calls.
func (s *sequence) other(p *modelCPU, id thread.ID, th *modelThread) {
	switch s.next() % 7 {
	case 0:
		s.begin(p, func(id thread.ID, result int64) {
			s.expect("write", 8)(id, result)
			s.wake(keyPoll, 1, 1)
		}, linux.SYS_WRITE, wakeFD, s.shared, 8)
	case 1:
		s.waits(p, th, modelThread{key: keyPoll, deadline: int64(s.core.clock.At(s.ticks)) + 20e3}, []int64{0, 1}, CallPoll, 20e3)
	case 2:
		s.ticks += s.next() * 10e3
	case 3:
		s.begin(p, s.expect("membarrier", -int64(linux.EINVAL)), linux.SYS_MEMBARRIER, 1<<20, 0)
	case 4:
		s.fill(p, id, th)
	case 5:
		s.begin(p, s.expect("move", 0), CallMove, s.next()%uint64(len(s.cpus)))
	default:
		s.begin(p, s.expect("sched_yield", 0), linux.SYS_SCHED_YIELD)
	}
}

// fill writes the pages of the arena from the start, until one cannot be written. This populates big pages.
func (s *sequence) fill(p *modelCPU, id thread.ID, th *modelThread) {
	for va := s.arena; va < s.arena+arenaPages*pageSize; va += pageSize {
		s.touch(p, id, th, va, true)
		if p.cpu.current != id || frameOf(p.page()).IP == modelHandler {
			return
		}
	}
}

// apply applies to the model what the kernel has done since a CPU entered it.
func (s *sequence) apply(p *modelCPU) {
	if do := s.done[p]; do != nil {
		delete(s.done, p)
		do(p.caller, s.resultOf(p.caller))
	}
	for _, id := range slices.Clone(s.waiters) {
		th := s.threads[id]
		if s.core.threads.At(id).State == thread.Waiting {
			continue
		}
		if now := int64(s.core.clock.At(s.ticks)); th.deadline > now {
			s.fail("thread %d: its wait for %#x ends at %d, before its deadline at %d", id, th.key, now, th.deadline)
		}
		s.endWait(id, th.late)
	}
	s.delivered(p)
	for _, other := range s.cpus {
		if th := s.threads[other.cpu.current]; other != p && th != nil && !other.kernel && !th.handler && th.interrupted() && other.pending == [2]uint64{} {
			s.fail("thread %d runs, signals %#x are pending, and no interrupt is pending", other.cpu.current, th.pending)
		}
	}
}

// resultOf returns the result of the call that a thread has made. If the thread is now in a signal handler, the result is in
// the signal's frame.
func (s *sequence) resultOf(id thread.ID) int64 {
	th, state := s.threads[id], s.core.threads.At(id)
	f := frameOf(state.Page)
	if th != nil && f.IP == modelHandler && !th.handler {
		return int64(signalFrameAt(f.SP).Context.Registers.AX)
	}
	return int64(f.AX)
}

// delivered checks the thread that a CPU resumes: the result of a call in which it waited, and whether it is in a handler of
// a signal that was pending.
func (s *sequence) delivered(p *modelCPU) {
	id := p.cpu.current
	th := s.threads[id]
	if id == thread.None || th == nil {
		return
	}
	if th.returns {
		if got := s.resultOf(id); got != th.result {
			s.fail("thread %d: its wait for %#x returns %d, want %d", id, th.key, got, th.result)
		}
		th.returns = false
	}
	f := frameOf(p.page())
	if f.IP == modelHandler && !th.handler {
		th.handler = true
		switch n := signal.Number(f.DI); {
		case n == signal.Segment && th.faults:
			th.faults = false
		case th.pending&^th.mask&signal.Of(n) == 0:
			s.fail("thread %d: signal %d is delivered; pending %#x, blocked %#x", id, n, th.pending, th.mask)
		default:
			th.pending &^= signal.Of(n)
		}
	} else if !th.handler && th.pending&^th.mask != 0 {
		s.fail("thread %d continues, and the signals %#x are pending", id, th.pending&^th.mask)
	}
}
