package call

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"loam/abi/linux"
	"loam/posix"
)

// Calls that wait: epoll, poll, select; and timer files.

// epollCtl implements epoll_ctl(2). EPOLL_CTL_DEL reads no event.
func epollCtl(c Caller, a Args) (uint64, linux.Errno) {
	var ev linux.EpollEvent
	if op := number(a.A2); op != linux.EPOLL_CTL_DEL {
		var errno linux.Errno
		if ev, errno = parse(c, a.A4, linux.SizeofEpollEvent, linux.ParseEpollEvent); errno != 0 {
			return fail(errno)
		}
	}
	return fail(c.Process.EpollCtl(fd(a.A1), number(a.A2), fd(a.A3), posix.EpollEvent(ev)))
}

func epollWait(c Caller, a Args) (uint64, linux.Errno) { return c.epollWait(a, milliseconds(a.A4)) }

// epollPwait implements epoll_pwait(2). The signal mask is checked; package task applies it.
func epollPwait(c Caller, a Args) (uint64, linux.Errno) {
	if errno := c.checkMask(a.A5, a.A6); errno != 0 {
		return fail(errno)
	}
	return epollWait(c, a)
}

// checkMask checks the address and the size of a signal mask; address 0 means that there is none.
func (c Caller) checkMask(addr, size uint64) linux.Errno {
	const setSize = 8
	if addr == 0 {
		return 0
	}
	if size != setSize {
		return linux.EINVAL
	}
	_, errno := c.Memory.Pointer(addr)
	return errno
}

func epollPwait2(c Caller, a Args) (uint64, linux.Errno) {
	timeout, errno := c.timeout(a.A4)
	if errno == 0 {
		errno = c.checkMask(a.A5, a.A6)
	}
	if errno != 0 {
		return fail(errno)
	}
	return c.epollWait(a, timeout)
}

// Limits of epoll_wait(2): events that one call returns, and the argument maxevents.
const (
	maxEpollEvents   = 1024
	mostEpollRequest = (1<<31 - 1) / linux.SizeofEpollEvent
)

// epollRooms holds buffers for the results of epoll_wait(2). Programs ask for many events and usually get one (redis asks
// for 10,000), so a new buffer for each call would cause most of the work of the garbage collector.
var epollRooms = sync.Pool{New: func() any { return new([maxEpollEvents]posix.EpollEvent) }}

func (c Caller) epollWait(a Args, timeout time.Duration) (uint64, linux.Errno) {
	n := number(a.A3)
	if n <= 0 || n > mostEpollRequest {
		return fail(linux.EINVAL)
	}
	room := epollRooms.Get().(*[maxEpollEvents]posix.EpollEvent)
	defer epollRooms.Put(room)
	events := room[:min(n, maxEpollEvents)]
	got, errno := c.Process.EpollWait(fd(a.A1), events, timeout)
	if errno != 0 || got == 0 {
		return result(got, errno)
	}
	l := c.borrow(got * linux.SizeofEpollEvent)
	defer l.giveBack()
	for i, ev := range events[:got] {
		linux.EpollEvent(ev).Put(l.b[i*linux.SizeofEpollEvent:])
	}
	return result(got, c.Memory.Write(a.A2, l.b))
}

// milliseconds converts a timeout. A negative timeout means forever.
func milliseconds(a uint64) time.Duration { return time.Duration(int32(a)) * time.Millisecond }

// forever is the timeout of a call that waits without a time limit.
const forever = -1

// mostSeconds is the maximum timeout. It is longer than any practical wait, and fits into a count of nanoseconds.
const mostSeconds = 1 << 33

// timeout reads a struct timespec. An address of 0 means forever.
func (c Caller) timeout(addr uint64) (time.Duration, linux.Errno) {
	if addr == 0 {
		return forever, 0
	}
	t, errno := parse(c, addr, linux.SizeofTimespec, linux.ParseTimespec)
	switch {
	case errno != 0:
		return 0, errno
	case t.Sec < 0 || t.Nsec < 0 || t.Nsec >= int64(time.Second):
		return 0, linux.EINVAL
	}
	t.Sec = min(t.Sec, mostSeconds)
	return time.Duration(t.Nano()), 0
}

// timevalTimeout reads a struct timeval. An address of 0 means forever.
func (c Caller) timevalTimeout(addr uint64) (time.Duration, linux.Errno) {
	if addr == 0 {
		return forever, 0
	}
	t, errno := parse(c, addr, linux.SizeofTimeval, linux.ParseTimeval)
	switch {
	case errno != 0:
		return 0, errno
	case t.Sec < 0 || t.Usec < 0:
		return 0, linux.EINVAL
	}
	// Microseconds of a million or more are carried into the seconds, as in fs/select.c of Linux.
	t.Sec = min(t.Sec, mostSeconds) + min(t.Usec/1e6, mostSeconds)
	t.Usec %= 1e6
	return time.Duration(t.Nano()), 0
}

// putTimespecLeft writes the remaining time of a wait to the struct timespec at addr. Like Linux, it writes nothing
// if the timeout is 0 or forever, and it ignores an error: the timeout may be in memory that is read-only.
func (c Caller) putTimespecLeft(addr uint64, timeout time.Duration, start time.Time) {
	if timeout > 0 {
		c.put(addr, linux.SizeofTimespec, linux.NanoTimespec(timeLeft(timeout, start)).Put)
	}
}

// timeLeft returns the remaining nanoseconds of a wait that began at start, and at least 0.
func timeLeft(timeout time.Duration, start time.Time) int64 {
	return int64(max(0, timeout-time.Since(start)))
}

func poll(c Caller, a Args) (uint64, linux.Errno) { return c.poll(a, milliseconds(a.A3)) }

func ppoll(c Caller, a Args) (uint64, linux.Errno) {
	timeout, errno := c.timeout(a.A3)
	if errno == 0 {
		errno = c.checkMask(a.A4, a.A5)
	}
	if errno != 0 {
		return fail(errno)
	}
	start := time.Now()
	n, errno := c.poll(a, timeout)
	c.putTimespecLeft(a.A3, timeout, start)
	return n, errno
}

// maxPoll is the maximum number of entries of poll(2), which is the maximum number of descriptors.
const maxPoll = 1 << 20

func (c Caller) poll(a Args, timeout time.Duration) (uint64, linux.Errno) {
	n := unsigned(a.A2)
	if n > maxPoll || n > c.Process.MostFiles() {
		return fail(linux.EINVAL)
	}
	l := c.borrow(n * linux.SizeofPollFD)
	defer l.giveBack()
	if errno := c.Memory.Read(l.b, a.A1); errno != 0 {
		return fail(errno)
	}
	fds := make([]posix.PollFD, n)
	for i := range fds {
		e := linux.ParsePollFD(l.b[i*linux.SizeofPollFD:])
		fds[i] = posix.PollFD{FD: int(e.FD), Events: posix.Events(e.Events)}
	}
	ready, errno := c.Process.Poll(fds, timeout)
	if errno != 0 {
		return fail(errno)
	}
	for i, f := range fds {
		linux.PollFD{FD: int32(f.FD), Events: uint16(f.Events), Revents: uint16(f.Revents)}.Put(l.b[i*linux.SizeofPollFD:])
	}
	return result(ready, c.Memory.Write(a.A1, l.b))
}

// selectEvents are the poll events of the three sets of select(2).
var selectEvents = [3]posix.Events{
	posix.PollIn | posix.PollHup | posix.PollErr,
	posix.PollOut | posix.PollErr,
	posix.PollPri,
}

func selectCall(c Caller, a Args) (uint64, linux.Errno) {
	timeout, errno := c.timevalTimeout(a.A5)
	if errno != 0 {
		return fail(errno)
	}
	start := time.Now()
	n, errno := c.selectSets(a, timeout)
	if timeout > 0 {
		c.put(a.A5, linux.SizeofTimeval, linux.NanoTimeval(timeLeft(timeout, start)).Put) // errors: as in putTimespecLeft
	}
	return n, errno
}

func pselect6(c Caller, a Args) (uint64, linux.Errno) {
	timeout, errno := c.timeout(a.A5)
	if errno != 0 {
		return fail(errno)
	}
	start := time.Now()
	n, errno := c.selectSets(a, timeout)
	c.putTimespecLeft(a.A5, timeout, start)
	return n, errno
}

// sets are the descriptor sets of select(2), as 64-bit words; nil: absent.
type sets [3][]uint64

// wordSize is the size of a word of a descriptor set in bytes, and wordBits the size in bits.
const (
	wordSize = 8
	wordBits = 8 * wordSize
)

// mostSelected is the maximum number of descriptors in a set. Bits beyond it are not read.
const mostSelected = maxPoll

func (c Caller) selectSets(a Args, timeout time.Duration) (uint64, linux.Errno) {
	n := number(a.A1)
	if n < 0 {
		return fail(linux.EINVAL)
	}
	n = min(n, mostSelected)
	words := (n + wordBits - 1) / wordBits
	addrs := [3]uint64{a.A2, a.A3, a.A4}
	var s sets
	for i, addr := range addrs {
		if addr == 0 {
			continue
		}
		b, errno := c.copyIn(addr, words*wordSize)
		if errno != 0 {
			return fail(errno)
		}
		for ; len(b) > 0; b = b[wordSize:] {
			s[i] = append(s[i], le.Uint64(b))
		}
	}
	fds := s.take(n)
	if _, errno := c.Process.Poll(fds, timeout); errno != 0 {
		return fail(errno)
	}
	for _, f := range fds {
		if f.Revents&posix.PollNval != 0 {
			return fail(linux.EBADF)
		}
	}
	ready := s.put(fds)
	for i, addr := range addrs {
		if errno := c.putWords(addr, s[i]); errno != 0 {
			return fail(errno)
		}
	}
	return result(ready, 0)
}

func (c Caller) putWords(addr uint64, words []uint64) linux.Errno {
	if len(words) == 0 {
		return 0
	}
	b := make([]byte, 0, len(words)*wordSize)
	for _, w := range words {
		b = le.AppendUint64(b, w)
	}
	return c.Memory.Write(addr, b)
}

// take returns one entry for each descriptor below n that is in a set, and clears the sets for the results.
func (s *sets) take(n int) []posix.PollFD {
	var fds []posix.PollFD
	for word := range (n + wordBits - 1) / wordBits {
		var asked [3]uint64
		for i, set := range s {
			if word < len(set) {
				asked[i], set[word] = set[word], 0
			}
		}
		for all := asked[0] | asked[1] | asked[2]; all != 0; all &= all - 1 {
			bit := bits.TrailingZeros64(all)
			f := posix.PollFD{FD: word*wordBits + bit}
			for i := range asked {
				if asked[i]>>bit&1 != 0 {
					f.Events |= selectEvents[i]
				}
			}
			if f.FD < n {
				fds = append(fds, f)
			}
		}
	}
	return fds
}

// put sets the bits of ready descriptors in the sets of select(2), and returns the number of bits. A descriptor belongs to a
// set if the events of the set are among the requested events of its entry.
func (s *sets) put(fds []posix.PollFD) int {
	n := 0
	for _, f := range fds {
		for i, set := range s {
			if set != nil && f.Events&selectEvents[i] == selectEvents[i] && f.Revents&selectEvents[i] != 0 {
				set[f.FD/wordBits] |= 1 << (f.FD % wordBits)
				n++
			}
		}
	}
	return n
}

func timerfdSettime(c Caller, a Args) (uint64, linux.Errno) {
	setting, errno := parse(c, a.A3, linux.SizeofItimerspec, linux.ParseItimerspec)
	if errno != 0 {
		return fail(errno)
	}
	before, errno := c.Process.TimerFDSet(fd(a.A1), number(a.A2), setting)
	if errno != 0 || a.A4 == 0 {
		return fail(errno)
	}
	return c.put(a.A4, linux.SizeofItimerspec, before.Put)
}

func timerfdGettime(c Caller, a Args) (uint64, linux.Errno) {
	s, errno := c.Process.TimerFDGet(fd(a.A1))
	if errno != 0 {
		return fail(errno)
	}
	return c.put(a.A2, linux.SizeofItimerspec, s.Put)
}

// adjtime implements adjtimex(2) and clock_adjtime(2).
func (c Caller) adjtime(clock int, addr uint64) (uint64, linux.Errno) {
	t, errno := parse(c, addr, linux.SizeofTimex, linux.ParseTimex)
	if errno != 0 {
		return fail(errno)
	}
	state, errno := c.Process.ClockAdjtime(clock, &t)
	if errno != 0 {
		return fail(errno)
	}
	_, errno = c.put(addr, linux.SizeofTimex, t.Put)
	return result(state, errno)
}

// clockSettime implements clock_settime(2): its checks of the arguments. No clock can be set.
func clockSettime(c Caller, a Args) (uint64, linux.Errno) {
	clock := number(a.A1)
	if clock > linux.CLOCK_REALTIME {
		return fail(linux.EINVAL)
	}
	t, errno := parse(c, a.A2, linux.SizeofTimespec, linux.ParseTimespec)
	switch {
	case errno != 0:
		return fail(errno)
	case clock < 0 && !c.Process.Timers().HasClock(clock, c.Process.Credentials().PID), clock == linux.CLOCK_REALTIME && !validTime(t.Sec, t.Nsec):
		return fail(linux.EINVAL)
	}
	return fail(linux.EPERM)
}

// settimeofday implements settimeofday(2) as clockSettime does.
func settimeofday(c Caller, a Args) (uint64, linux.Errno) {
	var t linux.Timeval
	var errno linux.Errno
	if a.A1 != 0 {
		t, errno = parse(c, a.A1, linux.SizeofTimeval, linux.ParseTimeval)
		switch {
		case errno != 0:
			return fail(errno)
		case t.Usec < 0 || t.Usec > int64(time.Second/time.Microsecond):
			return fail(linux.EINVAL)
		}
	}
	if a.A2 != 0 {
		const sizeofTimezone = 8
		if _, errno = c.copyIn(a.A2, sizeofTimezone); errno != 0 {
			return fail(errno)
		}
	}
	if !validTime(t.Sec, t.Usec*int64(time.Microsecond)) {
		return fail(linux.EINVAL)
	}
	return fail(linux.EPERM)
}

// validTime reports whether a clock can be set to a time: as on Linux, its nanoseconds must fit into 63 bits for 30 more years.
func validTime(sec, nsec int64) bool {
	const most = math.MaxInt64/int64(time.Second) - 30*365*24*60*60
	return sec >= 0 && sec < most && nsec >= 0 && nsec < int64(time.Second)
}

// epollCreate implements epoll_create(2). The size argument must be positive and has no other effect.
func (c Caller) epollCreate(a Args) (uint64, linux.Errno) {
	if number(a.A1) <= 0 {
		return fail(linux.EINVAL)
	}
	return result(c.Process.EpollCreate(0))
}
