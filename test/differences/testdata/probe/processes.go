package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// named returns the name of the calling thread.
func named() string {
	b := make([]byte, 16)
	_, errno := call(syscall.SYS_PRCTL, 16, at(&b[0]))
	if errno != 0 {
		return word(errno)
	}
	name, _, _ := bytes.Cut(b, []byte{0})
	return string(name)
}

// onThread runs f on a thread that ends afterwards.
func onThread(f func() string) string {
	c := make(chan string)
	go func() {
		runtime.LockOSThread()
		c <- f()
	}()
	return <-c
}

var processes = []probe{
	{"prctl PR_SET_NAME and PR_GET_NAME", func() string {
		return onThread(func() string { return joined(outcome(syscall.SYS_PRCTL, 15, text("a thread")), named()) })
	}},
	{"prctl PR_SET_NAME of more than 15 bytes", func() string {
		return onThread(func() string {
			return joined(outcome(syscall.SYS_PRCTL, 15, text("a thread with a long name")), named())
		})
	}},
	{"prctl PR_SET_NAME is of the thread alone", func() string {
		before := onThread(named)
		onThread(func() string { return outcome(syscall.SYS_PRCTL, 15, text("other")) })
		return yes(onThread(named) != "other" && before != "other")
	}},
	{"prctl PR_SET_NAME shows in /proc/self/task/TID/comm", func() string {
		return onThread(func() string {
			call(syscall.SYS_PRCTL, 15, text("shown"))
			b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/comm", syscall.Gettid()))
			return joined(word(err), string(bytes.TrimSpace(b)))
		})
	}},
	{"prctl PR_GET_DUMPABLE", func() string { return count(syscall.SYS_PRCTL, 3) }},
	{"prctl PR_SET_DUMPABLE", func() string { return joined(outcome(syscall.SYS_PRCTL, 4, 0), outcome(syscall.SYS_PRCTL, 4, 1)) }},
	{"prctl PR_SET_PDEATHSIG", func() string { return outcome(syscall.SYS_PRCTL, 1, 0) }},
	{"prctl PR_SET_CHILD_SUBREAPER", func() string { return joined(outcome(syscall.SYS_PRCTL, 36, 1), outcome(syscall.SYS_PRCTL, 36, 0)) }},
	{"prctl PR_GET_CHILD_SUBREAPER", func() string { var n int32; return joined(outcome(syscall.SYS_PRCTL, 37, at(&n)), fmt.Sprint(n)) }},
	{"prctl PR_SET_TIMERSLACK and PR_GET_TIMERSLACK", func() string {
		return onThread(func() string { return joined(outcome(syscall.SYS_PRCTL, 29, 7000), count(syscall.SYS_PRCTL, 30)) })
	}},
	{"prctl PR_GET_SECUREBITS", func() string { return count(syscall.SYS_PRCTL, 27) }},
	{"prctl PR_SET_THP_DISABLE", func() string {
		return joined(outcome(syscall.SYS_PRCTL, 41, 1, 0, 0, 0), outcome(syscall.SYS_PRCTL, 41, 0, 0, 0, 0))
	}},
	{"prctl PR_GET_TSC", func() string { var n int32; return joined(outcome(syscall.SYS_PRCTL, 25, at(&n)), fmt.Sprint(n)) }},
	{"prctl with an unknown option", func() string { return outcome(syscall.SYS_PRCTL, 9999) }},
	{"arch_prctl ARCH_GET_FS", func() string {
		var a uint64
		return joined(outcome(syscall.SYS_ARCH_PRCTL, 0x1003, at(&a)), yes(a != 0))
	}},
	{"arch_prctl with an unknown code", func() string { return outcome(syscall.SYS_ARCH_PRCTL, 0x9999, 0) }},
	{"pidfd_open of the own process", func() string {
		fd, errno := call(434, uintptr(os.Getpid()), 0)
		if errno == 0 {
			syscall.Close(int(fd))
		}
		return word(errno)
	}},
	{"pidfd_open of a process that is not there", func() string { return outcome(434, 0x3fffff, 0) }},
	{"pidfd_open of process 0", func() string { return outcome(434, 0, 0) }},
	{"pidfd_open with unknown flags", func() string { return outcome(434, uintptr(os.Getpid()), 1<<20) }},
	{"pidfd_send_signal to the own process", func() string {
		c, done := expects(syscall.SIGUSR1)
		defer done()
		fd, errno := call(434, uintptr(os.Getpid()), 0)
		if errno != 0 {
			return word(errno)
		}
		return joined(outcome(424, fd, 10, 0, 0), came(c))
	}},
	{"pidfd_send_signal to a file", func() string { return outcome(424, file("x", nil).Fd(), 0, 0, 0) }},
	{"pidfd_getfd of the own process", func() string {
		fd, errno := call(434, uintptr(os.Getpid()), 0)
		if errno != 0 {
			return word(errno)
		}
		f := file("x", []byte("hello"))
		n, errno := call(438, fd, f.Fd(), 0)
		if errno != 0 {
			return word(errno)
		}
		b := make([]byte, 5)
		_, err := syscall.Pread(int(n), b, 0)
		return joined(word(err), string(b))
	}},
	{"poll of a pidfd of the own process", func() string {
		fd, errno := call(434, uintptr(os.Getpid()), 0)
		if errno != 0 {
			return word(errno)
		}
		p := [2]uint32{uint32(fd), 1}
		return count(syscall.SYS_POLL, at(&p), 1, 0)
	}},
	{"waitid P_PIDFD of the own process", func() string {
		fd, errno := call(434, uintptr(os.Getpid()), 0)
		if errno != 0 {
			return word(errno)
		}
		var info [16]uint64
		return outcome(syscall.SYS_WAITID, 3, fd, at(&info), 4, 0)
	}},
	{"wait4 without children", func() string { _, err := syscall.Wait4(-1, nil, 0, nil); return word(err) }},
	{"waitid without children", func() string { var info [16]uint64; return outcome(syscall.SYS_WAITID, 0, 0, at(&info), 4, 0) }},
	{"another program", func() string { return word(exec.Command("/proc/self/exe", "nothing at all").Run()) }},
	{"ioprio_get", func() string { return count(syscall.SYS_IOPRIO_GET, 1, 0) }},
	{"ioprio_set to idle, then ioprio_get", func() string {
		return onThread(func() string {
			return joined(outcome(syscall.SYS_IOPRIO_SET, 1, 0, 3<<13), count(syscall.SYS_IOPRIO_GET, 1, 0))
		})
	}},
	{"ioprio_set to best effort 4", func() string {
		return onThread(func() string {
			return joined(outcome(syscall.SYS_IOPRIO_SET, 1, 0, 2<<13|4), count(syscall.SYS_IOPRIO_GET, 1, 0))
		})
	}},
	{"ioprio_set to an unknown class", func() string { return outcome(syscall.SYS_IOPRIO_SET, 1, 0, 7<<13) }},
	{"ioprio_set to real time", func() string { return outcome(syscall.SYS_IOPRIO_SET, 1, 0, 1<<13) }},
	{"ioprio_get of an unknown kind", func() string { return outcome(syscall.SYS_IOPRIO_GET, 9, 0) }},
	{"ioprio_get of a process that is not there", func() string { return outcome(syscall.SYS_IOPRIO_GET, 1, 0x3fffff) }},
	{"getpriority", func() string { return count(syscall.SYS_GETPRIORITY, 0, 0) }},
	{"setpriority, nicer", func() string { return outcome(syscall.SYS_SETPRIORITY, 0, 0, 0) }},
	{"setpriority, less nice", func() string { return outcome(syscall.SYS_SETPRIORITY, 0, 0, ^uintptr(4)) }},
	{"sched_getscheduler", func() string { return count(syscall.SYS_SCHED_GETSCHEDULER, 0) }},
	{"sched_getparam", func() string {
		var n int32
		return joined(outcome(syscall.SYS_SCHED_GETPARAM, 0, at(&n)), fmt.Sprint(n))
	}},
	{"sched_setscheduler SCHED_BATCH", func() string {
		return onThread(func() string { var n int32; return outcome(syscall.SYS_SCHED_SETSCHEDULER, 0, 3, at(&n)) })
	}},
	{"sched_setscheduler SCHED_FIFO", func() string {
		return onThread(func() string { n := int32(1); return outcome(syscall.SYS_SCHED_SETSCHEDULER, 0, 1, at(&n)) })
	}},
	{"sched_get_priority_max", func() string {
		return joined(count(syscall.SYS_SCHED_GET_PRIORITY_MAX, 0), count(syscall.SYS_SCHED_GET_PRIORITY_MAX, 1), count(syscall.SYS_SCHED_GET_PRIORITY_MAX, 9))
	}},
	{"sched_get_priority_min", func() string {
		return joined(count(syscall.SYS_SCHED_GET_PRIORITY_MIN, 0), count(syscall.SYS_SCHED_GET_PRIORITY_MIN, 1))
	}},
	{"sched_rr_get_interval", func() string { var t syscall.Timespec; return outcome(syscall.SYS_SCHED_RR_GET_INTERVAL, 0, at(&t)) }},
	{"sched_getattr", func() string { var b [56]byte; return outcome(315, 0, at(&b), 56, 0) }},
	{"sched_getaffinity is not empty", func() string {
		var s [16]uint64
		n, errno := call(syscall.SYS_SCHED_GETAFFINITY, 0, 128, at(&s))
		return joined(word(errno), yes(n > 0 && s[0] != 0))
	}},
	{"sched_setaffinity to no CPU", func() string { var s [16]uint64; return outcome(syscall.SYS_SCHED_SETAFFINITY, 0, 128, at(&s)) }},
	{"getcpu", func() string { var c, n uint32; return outcome(309, at(&c), at(&n), 0) }},
	{"personality", func() string { return count(syscall.SYS_PERSONALITY, 0xffffffff) }},
	{"getpgid, getsid and getppid", func() string {
		a, e1 := call(syscall.SYS_GETPGID, 0)
		b, e2 := call(syscall.SYS_GETPGRP)
		_, e3 := call(syscall.SYS_GETSID, 0)
		_, e4 := call(syscall.SYS_GETPPID)
		return joined(word(e1), word(e2), word(e3), word(e4), yes(a == b))
	}},
	{"getpgid of a process that is not there", func() string { return outcome(syscall.SYS_GETPGID, 0x3fffff) }},
	{"setuid to the own ID", func() string { return outcome(syscall.SYS_SETUID, uintptr(os.Getuid())) }},
	{"setuid to another ID", func() string { return outcome(syscall.SYS_SETUID, 12345) }},
	{"getresuid", func() string {
		var r, e, s uint32
		return joined(outcome(syscall.SYS_GETRESUID, at(&r), at(&e), at(&s)), yes(int(r) == os.Getuid()))
	}},
	{"getresgid", func() string {
		var r, e, s uint32
		return joined(outcome(syscall.SYS_GETRESGID, at(&r), at(&e), at(&s)), yes(int(r) == os.Getgid()))
	}},
	{"acct", func() string { return outcome(syscall.SYS_ACCT, 0) }},
	{"ptrace PTRACE_TRACEME of process 1", func() string { return outcome(syscall.SYS_PTRACE, 16, 1, 0, 0) }},
	{"bpf", func() string { var a [128]byte; return outcome(321, 0, at(&a), 128) }},
	{"kcmp of the own descriptors", func() string { p := uintptr(os.Getpid()); return count(312, p, p, 0, 0, 0) }},
	{"unshare of nothing", func() string { return outcome(syscall.SYS_UNSHARE, 0) }},
	{"setns of a file", func() string { return outcome(308, file("x", nil).Fd(), 0) }},
	{"seccomp", func() string { return outcome(317, 2, 0, at(new(uint32))) }},
	{"sethostname", func() string { return outcome(syscall.SYS_SETHOSTNAME, text("x"), 1) }},
	{"vhangup", func() string { return outcome(syscall.SYS_VHANGUP) }},
	{"reboot", func() string { return outcome(syscall.SYS_REBOOT, 0, 0, 0, 0) }},
	{"syslog", func() string { return outcome(syscall.SYS_SYSLOG, 3, 0, 0) }},
	{"a call that does not exist", func() string { return outcome(9999) }},
	{"set_tid_address", func() string {
		return onThread(func() string {
			n, errno := call(syscall.SYS_SET_TID_ADDRESS, at(new(int32)))
			return joined(word(errno), yes(int(n) == syscall.Gettid()))
		})
	}},
	{"set_robust_list", func() string {
		return onThread(func() string { return outcome(syscall.SYS_SET_ROBUST_LIST, at(&robust), 24) })
	}},
	{"get_robust_list", func() string { var h, n uint64; return outcome(syscall.SYS_GET_ROBUST_LIST, 0, at(&h), at(&n)) }},
}

var robust = [3]uint64{}

func init() { robust[0] = uint64(at(&robust)) }

// together runs n threads at the same time. It returns the number of threads that ran.
func together(n int) string {
	begun, end := make(chan bool), make(chan bool)
	for range n {
		go func() {
			runtime.LockOSThread()
			begun <- true
			<-end
		}()
	}
	for range n {
		<-begun
	}
	close(end)
	return fmt.Sprint(n)
}

// futexWord is the 32-bit word at which the futex probes wait.
var futexWord uint32

var threads = []probe{
	{"2,000 threads", func() string { return together(2000) }},
	{"gettid differs from thread to thread", func() string {
		other := ""
		id := func() string { return fmt.Sprint(syscall.Gettid()) }
		own := onThread(func() string {
			other = onThread(id)
			return id()
		})
		return yes(own != other)
	}},
	{"futex FUTEX_WAIT with another value", func() string { return outcome(syscall.SYS_FUTEX, at(&futexWord), 0, 1, 0, 0, 0) }},
	{"futex FUTEX_WAIT that times out", func() string {
		t := syscall.Timespec{Nsec: 1e6}
		return outcome(syscall.SYS_FUTEX, at(&futexWord), 128, 0, at(&t), 0, 0)
	}},
	{"futex FUTEX_WAIT_BITSET, absolute", func() string {
		t := syscall.NsecToTimespec(nanos(1) + 1e6)
		return outcome(syscall.SYS_FUTEX, at(&futexWord), 9|128, 0, at(&t), 0, 0xffffffff)
	}},
	{"futex FUTEX_WAKE without a waiter", func() string { return count(syscall.SYS_FUTEX, at(&futexWord), 1, 1, 0, 0, 0) }},
	{"futex FUTEX_REQUEUE without a waiter", func() string { return count(syscall.SYS_FUTEX, at(&futexWord), 3, 1, 1, at(new(uint32)), 0) }},
	{"futex FUTEX_WAKE_OP without a waiter", func() string { return count(syscall.SYS_FUTEX, at(&futexWord), 5, 1, 1, at(new(uint32)), 0) }},
	{"futex with an unknown operation", func() string { return outcome(syscall.SYS_FUTEX, at(&futexWord), 99, 0, 0, 0, 0) }},
	{"futex at an odd address", func() string { return outcome(syscall.SYS_FUTEX, at(&futexWord)+1, 0, 0, 0, 0, 0) }},
	{"futex_waitv", func() string { return outcome(449, 0, 0, 0, 0, 0) }},
	{"sched_yield", func() string { return outcome(syscall.SYS_SCHED_YIELD) }},
	{"a goroutine that computes is preempted", func() string {
		was := runtime.GOMAXPROCS(1)
		defer runtime.GOMAXPROCS(was)
		var stop atomic.Bool
		ended := make(chan bool)
		go func() {
			for i := 0; !stop.Load(); i++ {
				sink = byte(i)
			}
			ended <- true
		}()
		time.Sleep(time.Millisecond)
		stop.Store(true)
		<-ended
		return "yes"
	}},
	{"clone of a process", func() string { return cloned() }},
}

// cloned calls clone(2) with flags that contradict each other, so that it creates no process.
func cloned() string { return outcome(syscall.SYS_CLONE, 0x10000, 0, 0, 0, 0) }
