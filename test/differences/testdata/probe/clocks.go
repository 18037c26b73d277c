package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func clock(id uintptr) (syscall.Timespec, string) {
	var t syscall.Timespec
	return t, outcome(syscall.SYS_CLOCK_GETTIME, id, at(&t))
}

// nanos returns the time of a clock in nanoseconds.
func nanos(id int) int64 {
	var t syscall.Timespec
	call(syscall.SYS_CLOCK_GETTIME, uintptr(id), at(&t))
	return t.Nano()
}

var clocks = []probe{
	{"clock_gettime of clocks 0 to 17, but those of alarms", func() string {
		s := ""
		for id := range uintptr(18) {
			if id == 8 || id == 9 { // these clocks exist only if the machine has a hardware clock
				continue
			}
			_, r := clock(id)
			s += r + " "
		}
		return s
	}},
	{"CLOCK_TAI is near CLOCK_REALTIME", func() string { d := nanos(11) - nanos(0); return yes(d > -1e9 && d < 60e9) }},
	{"CLOCK_BOOTTIME is not before CLOCK_MONOTONIC", func() string { m := nanos(1); return yes(nanos(7) >= m) }},
	{"CLOCK_REALTIME is after 2025", func() string { return yes(nanos(0) > 1735689600e9) }},
	{"CLOCK_PROCESS_CPUTIME_ID grows", func() string {
		before := nanos(2)
		for nanos(2) < before+1e6 {
		}
		return "yes"
	}},
	{"clock_gettime of a CPU clock of the caller", func() string { _, s := clock(uintptr(0xfffffffffffffffe)); return s }},
	{"clock_gettime of a bad address", func() string { return outcome(syscall.SYS_CLOCK_GETTIME, 0, 0x0dead000) }},
	{"clock_getres", func() string {
		s := ""
		for id := range uintptr(8) {
			var t syscall.Timespec
			s += outcome(syscall.SYS_CLOCK_GETRES, id, at(&t)) + " "
		}
		return s
	}},
	{"clock_settime", func() string { t := syscall.Timespec{Sec: 1}; return outcome(syscall.SYS_CLOCK_SETTIME, 0, at(&t)) }},
	{"settimeofday", func() string { t := syscall.Timeval{Sec: 1}; return word(syscall.Settimeofday(&t)) }},
	{"clock_nanosleep, relative", func() string {
		t := syscall.Timespec{Nsec: 1e6}
		before := nanos(1)
		s := outcome(syscall.SYS_CLOCK_NANOSLEEP, 1, 0, at(&t), 0)
		return joined(s, yes(nanos(1) >= before+1e6))
	}},
	{"clock_nanosleep, absolute", func() string {
		t := syscall.NsecToTimespec(nanos(1) + 1e6)
		s := outcome(syscall.SYS_CLOCK_NANOSLEEP, 1, 1, at(&t), 0)
		return joined(s, yes(nanos(1) >= t.Nano()))
	}},
	{"clock_nanosleep by CLOCK_REALTIME, absolute", func() string {
		t := syscall.NsecToTimespec(nanos(0) + 1e6)
		return outcome(syscall.SYS_CLOCK_NANOSLEEP, 0, 1, at(&t), 0)
	}},
	{"clock_nanosleep by the thread's CPU clock", func() string {
		t := syscall.Timespec{Nsec: 1}
		return outcome(syscall.SYS_CLOCK_NANOSLEEP, 3, 0, at(&t), 0)
	}},
	{"nanosleep with a billion nanoseconds", func() string {
		t := syscall.Timespec{Nsec: 1e9}
		return outcome(syscall.SYS_NANOSLEEP, at(&t), 0)
	}},
	{"gettimeofday and time agree", func() string {
		var tv syscall.Timeval
		syscall.Gettimeofday(&tv)
		n, _ := call(syscall.SYS_TIME, 0)
		d := int64(n) - tv.Sec
		return yes(d >= -1 && d <= 1)
	}},
	{"times", func() string {
		var b [4]int64
		n, errno := call(syscall.SYS_TIMES, at(&b))
		return joined(word(errno), yes(n > 0))
	}},
	{"adjtimex that only reads", func() string { var b [208]byte; _, errno := call(syscall.SYS_ADJTIMEX, at(&b)); return word(errno) }},
	{"the local zone without a file", func() string { return time.Unix(0, 0).UTC().Format(time.RFC3339) }},
}

// sigevent is struct sigevent.
func sigevent(notify, sig int32, tid int) *[8]uint64 {
	var e [8]uint64
	e[0] = 42
	e[1] = uint64(uint32(sig)) | uint64(uint32(notify))<<32
	e[2] = uint64(uint32(tid))
	return &e
}

// came reports whether a signal arrives.
func came(c <-chan os.Signal) string {
	select {
	case s := <-c:
		return "signal " + fmt.Sprint(int(s.(syscall.Signal)))
	case <-time.After(20 * time.Second):
		return "no signal"
	}
}

// expects returns a channel that receives a signal, and a function that stops the reception.
func expects(s syscall.Signal) (chan os.Signal, func()) {
	c := make(chan os.Signal, 10)
	signal.Notify(c, s)
	return c, func() { signal.Stop(c) }
}

// itimer sets an interval timer. Times are in microseconds.
func itimer(which uintptr, value, interval int64) string {
	t := [4]int64{0, interval, 0, value}
	return outcome(syscall.SYS_SETITIMER, which, at(&t), 0)
}

// ownTimer creates a timer that sends a signal.
func ownTimer(clock uintptr, notify, sig int32) (uintptr, syscall.Errno) {
	var id int32 = -1
	_, errno := call(syscall.SYS_TIMER_CREATE, clock, at(sigevent(notify, sig, syscall.Gettid())), at(&id))
	return uintptr(id), errno
}

var timers = []probe{
	{"setitimer ITIMER_REAL sends SIGALRM", func() string {
		c, done := expects(syscall.SIGALRM)
		defer done()
		return joined(itimer(0, 1000, 0), came(c))
	}},
	{"setitimer ITIMER_REAL with an interval", func() string {
		c, done := expects(syscall.SIGALRM)
		defer done()
		s := joined(itimer(0, 1000, 1000), came(c), came(c), came(c))
		return joined(s, itimer(0, 0, 0))
	}},
	{"setitimer ITIMER_REAL returns the old value", func() string {
		var old [4]int64
		a := itimer(0, 0, 0)
		t := [4]int64{7, 0, 1000, 0}
		call(syscall.SYS_SETITIMER, 0, at(&t), 0)
		t = [4]int64{}
		b := outcome(syscall.SYS_SETITIMER, 0, at(&t), at(&old))
		return joined(a, b, fmt.Sprint(old[0]), yes(old[2] == 999 || old[2] == 1000))
	}},
	{"setitimer ITIMER_VIRTUAL sends SIGVTALRM", func() string {
		c, done := expects(syscall.SIGVTALRM)
		defer done()
		s := itimer(1, 1000, 0)
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		}
		return joined(s, came(c))
	}},
	{"setitimer of an unknown timer", func() string { return itimer(3, 0, 0) }},
	{"setitimer with a million microseconds", func() string { return itimer(0, 1e6, 0) }},
	{"getitimer", func() string { var t [4]int64; return joined(outcome(syscall.SYS_GETITIMER, 0, at(&t)), fmt.Sprint(t)) }},
	{"alarm", func() string {
		c, done := expects(syscall.SIGALRM)
		defer done()
		call(syscall.SYS_ALARM, 100)
		s := count(syscall.SYS_ALARM, 1)
		return joined(s, came(c))
	}},
	{"timer_create CLOCK_MONOTONIC, SIGEV_SIGNAL", func() string {
		c, done := expects(syscall.SIGUSR1)
		defer done()
		id, errno := ownTimer(1, 0, int32(syscall.SIGUSR1))
		if errno != 0 {
			return word(errno)
		}
		t := [4]int64{0, 0, 0, 1e6}
		s := outcome(syscall.SYS_TIMER_SETTIME, id, 0, at(&t), 0)
		return joined(s, came(c), outcome(syscall.SYS_TIMER_DELETE, id))
	}},
	{"timer_create CLOCK_REALTIME, absolute", func() string {
		c, done := expects(syscall.SIGUSR1)
		defer done()
		id, errno := ownTimer(0, 0, int32(syscall.SIGUSR1))
		if errno != 0 {
			return word(errno)
		}
		when := syscall.NsecToTimespec(nanos(0) + 1e6)
		t := [4]int64{0, 0, when.Sec, when.Nsec}
		s := outcome(syscall.SYS_TIMER_SETTIME, id, 1, at(&t), 0)
		return joined(s, came(c), outcome(syscall.SYS_TIMER_DELETE, id))
	}},
	{"timer_create with SIGEV_NONE, read by timer_gettime", func() string {
		id, errno := ownTimer(1, 1, 0)
		if errno != 0 {
			return word(errno)
		}
		t, got := [4]int64{3, 0, 1000, 0}, [4]int64{}
		s := outcome(syscall.SYS_TIMER_SETTIME, id, 0, at(&t), 0)
		s2 := outcome(syscall.SYS_TIMER_GETTIME, id, at(&got))
		return joined(s, s2, fmt.Sprint(got[0]), yes(got[2] == 999 || got[2] == 1000), outcome(syscall.SYS_TIMER_DELETE, id))
	}},
	{"timer_create with an interval, then timer_getoverrun", func() string {
		c, done := expects(syscall.SIGUSR1)
		defer done()
		id, errno := ownTimer(1, 0, int32(syscall.SIGUSR1))
		if errno != 0 {
			return word(errno)
		}
		t := [4]int64{0, 1e6, 0, 1e6}
		call(syscall.SYS_TIMER_SETTIME, id, 0, at(&t), 0)
		s := joined(came(c), came(c))
		_, errno = call(syscall.SYS_TIMER_GETOVERRUN, id)
		return joined(s, word(errno), outcome(syscall.SYS_TIMER_DELETE, id))
	}},
	{"timer_create with a null event", func() string {
		c, done := expects(syscall.SIGALRM)
		defer done()
		var id int32
		s := outcome(syscall.SYS_TIMER_CREATE, 1, 0, at(&id))
		t := [4]int64{0, 0, 0, 1e6}
		call(syscall.SYS_TIMER_SETTIME, uintptr(id), 0, at(&t), 0)
		return joined(s, came(c), outcome(syscall.SYS_TIMER_DELETE, uintptr(id)))
	}},
	{"timer_create of the process's CPU clock", func() string {
		c, done := expects(syscall.SIGUSR1)
		defer done()
		id, errno := ownTimer(2, 0, int32(syscall.SIGUSR1))
		if errno != 0 {
			return word(errno)
		}
		t := [4]int64{0, 0, 0, 1e6}
		call(syscall.SYS_TIMER_SETTIME, id, 0, at(&t), 0)
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		}
		return joined(came(c), outcome(syscall.SYS_TIMER_DELETE, id))
	}},
	{"timer_create of an unknown clock", func() string { _, errno := ownTimer(17, 1, 0); return word(errno) }},
	{"timer_create with an unknown signal", func() string { _, errno := ownTimer(1, 0, 99); return word(errno) }},
	{"timer_create CLOCK_BOOTTIME", func() string {
		id, errno := ownTimer(7, 1, 0)
		return joined(word(errno), outcome(syscall.SYS_TIMER_DELETE, id))
	}},
	{"timer_settime of a timer that is not there", func() string {
		var t [4]int64
		return outcome(syscall.SYS_TIMER_SETTIME, 4000, 0, at(&t), 0)
	}},
	{"timer_delete of a timer that is not there", func() string { return outcome(syscall.SYS_TIMER_DELETE, 4000) }},
	{"timerfd", func() string {
		fd, errno := call(283, 1, 0)
		if errno != 0 {
			return word(errno)
		}
		t := [4]int64{0, 0, 0, 1e6}
		s := outcome(286, fd, 0, at(&t), 0)
		b := make([]byte, 8)
		n, err := syscall.Read(int(fd), b)
		return joined(s, word(err), fmt.Sprint(n, b[0]))
	}},
	{"100,000 timers of Go", func() string {
		fired := make(chan bool, 1)
		all := make([]*time.Timer, 100000)
		for i := range all {
			all[i] = time.AfterFunc(time.Hour, func() {})
		}
		time.AfterFunc(time.Millisecond, func() { fired <- true })
		<-fired
		for _, t := range all {
			t.Stop()
		}
		return "ok"
	}},
}
