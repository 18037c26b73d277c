package task

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/signal"
)

// CPU time is accounted where a thread leaves and enters ring 3. The time within Run is user time. The time between two
// Runs is system time, without the waits. A thread that is runnable but has no processor is charged for it.

// usage counts the use of resources by a task, or the sum of several tasks (getrusage(2)). Times are in nanoseconds. The
// goroutine of the task writes; anyone reads.
type usage struct {
	user, system           atomic.Int64
	minor, major           atomic.Int64 // page faults
	voluntary, involuntary atomic.Int64 // context switches: waits, and interrupts in ring 3
	peak                   atomic.Int64 // resident memory, in pages: see sample

	reads, writes, bytesRead, bytesWritten atomic.Int64 // calls like read(2) and write(2)
}

// add adds the use by another task or process.
func (u *usage) add(o *usage) {
	u.user.Add(o.user.Load())
	u.system.Add(o.system.Load())
	u.minor.Add(o.minor.Load())
	u.major.Add(o.major.Load())
	u.voluntary.Add(o.voluntary.Load())
	u.involuntary.Add(o.involuntary.Load())
	u.reads.Add(o.reads.Load())
	u.writes.Add(o.writes.Load())
	u.bytesRead.Add(o.bytesRead.Load())
	u.bytesWritten.Add(o.bytesWritten.Load())
	u.peak.Store(max(u.peak.Load(), o.peak.Load()))
}

// total returns the CPU time.
func (u *usage) total() time.Duration { return time.Duration(u.user.Load() + u.system.Load()) }

// put encodes a struct rusage.
func (u *usage) put(b []byte) {
	le := binary.LittleEndian
	linux.NanoTimeval(u.user.Load()).Put(b)
	linux.NanoTimeval(u.system.Load()).Put(b[linux.SizeofTimeval:])
	for _, f := range [...]struct {
		at    int
		value int64
	}{
		{32, u.peak.Load() << mem.PageShift >> 10}, {64, u.minor.Load()}, {72, u.major.Load()},
		{128, u.voluntary.Load()}, {136, u.involuntary.Load()},
	} {
		le.PutUint64(b[f.at:], uint64(f.value))
	}
}

// rusageSize is the size of struct rusage in bytes (getrusage(2)).
const rusageSize = 144

// charge adds the time since the last call to a counter.
func (t *Task) charge(to *atomic.Int64) {
	now := t.process.system.clock()
	to.Add(now - t.since)
	t.since = now
}

// run runs the thread in ring 3, and accounts the time.
func (t *Task) run() Reason {
	t.charge(&t.usage.system)
	reason := t.thread.Run()
	t.charge(&t.usage.user)
	if reason == Interrupted {
		t.usage.involuntary.Add(1)
	}
	if t.process.timed.Load() {
		t.process.expire()
	}
	return reason
}

// rest accounts the beginning and the end of a wait in a call.
func (t *Task) rest(asleep bool) {
	if asleep {
		t.charge(&t.usage.system)
		t.usage.voluntary.Add(1)
		t.sleeps.Store(true)
		return
	}
	t.since = t.process.system.clock()
	t.sleeps.Store(false)
}

// sample records the peak of resident memory: the private pages or, if these are more, the faults of the program. A page of
// a file counts only if it was mapped by a fault of its own.
func (t *Task) sample() {
	if t.memory() == nil { // of the program in ring 0
		return
	}
	n := int64(t.memory().Usage().Private >> mem.PageShift)
	n = max(n, t.usage.minor.Load()-t.faultsBefore)
	if n > t.usage.peak.Load() {
		t.usage.peak.Store(n)
	}
}

// used returns the use by all tasks of the process, ended ones included. The caller holds System.mu.
func (p *Process) used() *usage {
	sum := &usage{}
	sum.add(&p.past)
	for _, t := range p.tasks {
		sum.add(&t.usage)
	}
	return sum
}

// getrusage implements getrusage(2).
func getrusage(t *Task, a call.Args) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	t.charge(&t.usage.system)
	t.sample()
	u := &usage{}
	s.mu.Lock()
	switch number(a.A1) {
	case linux.RUSAGE_SELF:
		u = p.used()
	case linux.RUSAGE_CHILDREN:
		u.add(&p.children)
	case linux.RUSAGE_THREAD:
		u.add(&t.usage)
	default:
		s.mu.Unlock()
		return 0, linux.EINVAL
	}
	s.mu.Unlock()
	b := make([]byte, rusageSize)
	u.put(b)
	return 0, t.caller.Memory.Write(a.A2, b)
}

// tick is the unit of times(2) and of /proc (sysconf(_SC_CLK_TCK)).
const tick = 10 * time.Millisecond

// times implements times(2).
func times(t *Task, a call.Args) (uint64, linux.Errno) {
	const sizeofTms = 32
	s := t.process.system
	t.charge(&t.usage.system)
	s.mu.Lock()
	own, children := t.process.used(), &usage{}
	children.add(&t.process.children)
	s.mu.Unlock()
	errno := t.put(a.A1, sizeofTms, func(b []byte) {
		for i, v := range [...]int64{own.user.Load(), own.system.Load(), children.user.Load(), children.system.Load()} {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(v/int64(tick)))
		}
	})
	return uint64(s.monotonic() / tick), errno
}

// cpuClock returns the time of a clock of CPU time: of the caller, or of a process or thread whose number the clock ID
// contains (clock_getcpuclockid(3), pthread_getcpuclockid(3)). ok is false if the ID is not one of these.
func (t *Task) cpuClock(id int) (now int64, ok bool) {
	const perThread, kinds, scheduled = 4, 3, 2
	s := t.process.system
	pid, thread := 0, false
	switch {
	case id == linux.CLOCK_PROCESS_CPUTIME_ID:
	case id == linux.CLOCK_THREAD_CPUTIME_ID:
		thread = true
	case id < 0 && id&kinds <= scheduled:
		pid, thread = ^(id >> 3), id&perThread != 0
	default:
		return 0, false
	}
	t.charge(&t.usage.system)
	s.mu.Lock()
	defer s.mu.Unlock()
	if thread {
		of := t
		if pid != 0 {
			if of = s.tasks[pidFrom(pid)]; of == nil || of.process != t.process {
				return 0, false
			}
		}
		return int64(of.usage.total()), true
	}
	p := t.process
	if pid != 0 {
		if p = s.processes[pidFrom(pid)]; p == nil {
			return 0, false
		}
	}
	return int64(p.used().total()), true
}

// cpuTimer is one of the timers of CPU time of a process: ITIMER_VIRTUAL, ITIMER_PROF and RLIMIT_CPU. System.mu guards it.
type cpuTimer struct {
	at, interval time.Duration // CPU time of the next expiration; 0: none
}

// set starts the timer at a CPU time, and returns the time that was left and the interval.
func (c *cpuTimer) set(now, first, interval time.Duration) (left, old time.Duration) {
	left, old = c.left(now)
	c.at, c.interval = 0, interval
	if first > 0 {
		c.at = now + first
	}
	return left, old
}

func (c *cpuTimer) left(now time.Duration) (left, interval time.Duration) {
	if c.at == 0 {
		return 0, c.interval
	}
	return max(c.at-now, time.Microsecond), c.interval
}

// due reports whether the timer has expired, and starts it again.
func (c *cpuTimer) due(now time.Duration) bool {
	if c.at == 0 || now < c.at {
		return false
	}
	c.at = 0
	if c.interval > 0 {
		c.at = now + c.interval
	}
	return true
}

// expire sends the signals of timers of CPU time that have expired. It runs when a task leaves ring 3.
func (p *Process) expire() {
	s := p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	used := p.used()
	send := func(n signal.Number) { p.send(nil, signal.Info{Signal: n, Code: signal.CodeKernel}) }
	if p.virtual.due(time.Duration(used.user.Load())) {
		send(linux.SIGVTALRM)
	}
	if p.profile.due(used.total()) {
		send(linux.SIGPROF)
	}
	p.limitCPU(used.total(), send)
	p.retime()
}

// limitCPU sends SIGXCPU every second after the soft limit of CPU time, and SIGKILL at the hard limit (setrlimit(2)).
func (p *Process) limitCPU(used time.Duration, send func(signal.Number)) {
	l := p.limits[linux.RLIMIT_CPU]
	if l.Max != mem.Infinite && uint64(used/time.Second) >= l.Max {
		send(signal.Kill)
		return
	}
	if l.Cur != mem.Infinite && uint64(used/time.Second) >= max(l.Cur, p.warned) {
		p.warned = uint64(used/time.Second) + 1
		send(linux.SIGXCPU)
	}
}

// retime records whether a timer of CPU time is running. The caller holds System.mu.
func (p *Process) retime() {
	l := p.limits[linux.RLIMIT_CPU]
	p.timed.Store(p.virtual.at != 0 || p.profile.at != 0 || l.Cur != mem.Infinite || l.Max != mem.Infinite)
}

// cpuItimer returns the timer of CPU time with a number of setitimer(2), and the CPU time that it measures; nil if there is
// none. The caller holds System.mu.
func (p *Process) cpuItimer(which int) (*cpuTimer, time.Duration) {
	switch used := p.used(); which {
	case linux.ITIMER_VIRTUAL:
		return &p.virtual, time.Duration(used.user.Load())
	case linux.ITIMER_PROF:
		return &p.profile, used.total()
	}
	return nil, 0
}

// countFault counts a page fault.
func (t *Task) countFault() {
	const every = 32 // faults between two samples
	if t.usage.minor.Add(1)%every == 0 {
		t.sample()
	}
}

func pidFrom(n int) family.PID { return family.PID(int32(n)) }

// countTransfer counts a call that reads or writes, for /proc/PID/io.
func (t *Task) countTransfer(kind uint8, n uint64) {
	switch {
	case kind&reads != 0:
		t.usage.reads.Add(1)
		t.usage.bytesRead.Add(int64(n))
	case kind&writes != 0:
		t.usage.writes.Add(1)
		t.usage.bytesWritten.Add(int64(n))
	}
}
