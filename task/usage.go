package task

import (
	"encoding/binary"
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/timer"
	"loam/task/account"
	"loam/task/family"
	"loam/task/signal"
)

// CPU time. The time in ring 3 is user time. The time between two runs in ring 3 is system time, except for waits. A thread
// that is runnable but has no processor is charged for it. The machine measures both; the task adds them to its counters
// when it waits, ends, asks for its CPU time, or is interrupted in ring 3. The runtime interrupts a thread that does not wait
// after about 10 ms, so the counters of other threads are never older.

// charge adds the CPU time since the last call to the counters of the thread.
func (t *Task) charge() {
	user, system := t.thread.Spent()
	t.usage.User.Add(user)
	t.usage.System.Add(system)
}

// run runs the thread in ring 3.
func (t *Task) run() Reason {
	reason := t.thread.Run()
	if reason == Interrupted {
		t.charge()
		t.usage.Involuntary.Add(1)
	}
	if t.process.timed.Load() {
		t.charge()
		t.process.expire()
	}
	return reason
}

// rest is called at the beginning and at the end of a wait in a system call, whose duration does not count as CPU time.
func (t *Task) rest(asleep bool) {
	if asleep {
		t.charge()
		t.usage.Voluntary.Add(1)
		t.thread.Rest()
	} else {
		t.thread.Spent() // the wait is no CPU time
	}
	t.sleeps.Store(asleep)
}

// sample records the peak of resident memory. It uses the number of private pages or, if that is larger, the number
// of page faults since execve. So a page of a file counts only if the fault that mapped it was for this page.
func (t *Task) sample() {
	if t.memory() == nil { // the program in ring 0 makes the call
		return
	}
	n := max(int64(t.memory().Usage().Private>>mem.PageShift), t.usage.Minor.Load()-t.faultsBefore)
	t.usage.Peak.Store(max(n, t.usage.Peak.Load()))
}

// used returns the resources used by all tasks of the process, including those that have ended. The caller holds System.mu.
func (p *Process) used() *account.Usage {
	sum := &account.Usage{}
	sum.Add(&p.past)
	for _, t := range p.tasks {
		sum.Add(&t.usage)
	}
	return sum
}

// getrusage implements getrusage(2).
func getrusage(t *Task, a call.Args) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	t.charge()
	t.sample()
	u := &account.Usage{}
	s.mu.Lock()
	switch number(a.A1) {
	case linux.RUSAGE_SELF:
		u = p.used()
	case linux.RUSAGE_CHILDREN:
		u.Add(&p.children)
	case linux.RUSAGE_THREAD:
		u.Add(&t.usage)
	default:
		s.mu.Unlock()
		return 0, linux.EINVAL
	}
	s.mu.Unlock()
	b := make([]byte, account.Size)
	u.Put(b)
	return 0, t.caller.Memory.Write(a.A2, b)
}

// tick is the unit of times(2) and of /proc (sysconf(_SC_CLK_TCK)).
const tick = 10 * time.Millisecond

// times implements times(2).
func times(t *Task, a call.Args) (uint64, linux.Errno) {
	const sizeofTms = 32
	s := t.process.system
	t.charge()
	s.mu.Lock()
	own, children := t.process.used(), &account.Usage{}
	children.Add(&t.process.children)
	s.mu.Unlock()
	errno := t.put(a.A1, sizeofTms, func(b []byte) {
		for i, v := range [...]int64{own.User.Load(), own.System.Load(), children.User.Load(), children.System.Load()} {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(v/int64(tick)))
		}
	})
	return uint64(s.monotonic() / tick), errno
}

// cpuClock returns the ID of a clock for Process.cpuTime: a clock of the calling thread gets the number of the thread.
func (t *Task) cpuClock(id int) int {
	if number, thread, _ := timer.ParseClock(id); thread && number == 0 {
		return timer.ThreadClock(int(t.id))
	}
	return id
}

// cpuTime implements timer.CPUClock: it reads the clock of a process, or of a thread of p.
func (p *Process) cpuTime(id int) (now time.Duration, ok bool) {
	number, thread, ok := timer.ParseClock(id)
	s := p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[pidFrom(number)]; thread {
		if t == nil || t.process != p {
			return 0, false
		}
		return t.usage.Total(), true
	}
	if number != 0 {
		p = s.processes[pidFrom(number)]
	}
	if !ok || p == nil {
		return 0, false
	}
	return p.used().Total(), true
}

// expire sends the signals of CPU time timers that have expired. It runs when a thread leaves ring 3.
func (p *Process) expire() {
	s := p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	used := p.used()
	send := func(n signal.Number) { p.send(nil, signal.Info{Signal: n, Code: signal.CodeKernel}) }
	if p.virtual.Due(time.Duration(used.User.Load())) {
		send(linux.SIGVTALRM)
	}
	if p.profile.Due(used.Total()) {
		send(linux.SIGPROF)
	}
	p.limitCPU(used.Total(), send)
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

// retime updates the flag timed: whether a timer of CPU time of the process is running. The caller holds System.mu.
func (p *Process) retime() {
	l := p.limits[linux.RLIMIT_CPU]
	p.timed.Store(p.virtual.Armed() || p.profile.Armed() || l.Cur != mem.Infinite || l.Max != mem.Infinite)
}

// cpuItimer returns the timer of CPU time with a number of setitimer(2), and the CPU time that it measures; nil if there is
// none. The caller holds System.mu.
func (p *Process) cpuItimer(which int) (*account.Timer, time.Duration) {
	switch used := p.used(); which {
	case linux.ITIMER_VIRTUAL:
		return &p.virtual, time.Duration(used.User.Load())
	case linux.ITIMER_PROF:
		return &p.profile, used.Total()
	}
	return nil, 0
}

// countFault counts a page fault of the thread.
func (t *Task) countFault() {
	const every = 32 // number of page faults between two samples
	if t.usage.Minor.Add(1)%every == 0 {
		t.sample()
	}
}

func pidFrom(n int) family.PID { return family.PID(int32(n)) }

// countTransfer counts a call that reads or writes, for /proc/PID/io.
func (t *Task) countTransfer(kind uint8, n uint64) {
	switch {
	case kind&reads != 0:
		t.usage.Reads.Add(1)
		t.usage.BytesRead.Add(int64(n))
	case kind&writes != 0:
		t.usage.Writes.Add(1)
		t.usage.BytesWritten.Add(int64(n))
	}
}
