package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

const mask1 = 1 << (10 - 1) // signal mask with SIGUSR1 (10) only

// blocked runs f on a thread on which SIGUSR1 is blocked. The thread ends afterwards.
func blocked(f func() string) string {
	c := make(chan string)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with its goroutine
		set := uint64(mask1)
		call(syscall.SYS_RT_SIGPROCMASK, 0, at(&set), 0, 8)
		c <- f()
	}()
	return <-c
}

var signals = []probe{
	{"kill of the own process", func() string {
		c, done := expects(syscall.SIGUSR1)
		defer done()
		return joined(word(syscall.Kill(os.Getpid(), syscall.SIGUSR1)), came(c))
	}},
	{"tgkill of the own thread", func() string {
		c, done := expects(syscall.SIGUSR2)
		defer done()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		s := outcome(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGUSR2))
		return joined(s, came(c))
	}},
	{"tkill of the own thread", func() string {
		c, done := expects(syscall.SIGUSR2)
		defer done()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return joined(outcome(syscall.SYS_TKILL, uintptr(syscall.Gettid()), uintptr(syscall.SIGUSR2)), came(c))
	}},
	{"kill of process 0x7fffffff", func() string { return word(syscall.Kill(0x3fffff, 0)) }},
	{"kill with signal 65", func() string { return word(syscall.Kill(os.Getpid(), 65)) }},
	{"kill of the own group", func() string { return word(syscall.Kill(0, 0)) }},
	{"a real-time signal", func() string {
		c, done := expects(syscall.Signal(40))
		defer done()
		return joined(word(syscall.Kill(os.Getpid(), 40)), came(c))
	}},
	{"rt_sigqueueinfo to the own process", func() string {
		c, done := expects(syscall.SIGUSR1)
		defer done()
		var info [16]uint64
		info[0], info[1] = 10, uint64(0xffffffff) // si_signo, and si_code SI_QUEUE
		return joined(outcome(syscall.SYS_RT_SIGQUEUEINFO, uintptr(os.Getpid()), 10, at(&info)), came(c))
	}},
	{"rt_sigpending of a blocked signal", func() string {
		return blocked(func() string {
			call(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), 10)
			var set uint64
			s := outcome(syscall.SYS_RT_SIGPENDING, at(&set), 8)
			return joined(s, yes(set&mask1 != 0))
		})
	}},
	{"rt_sigtimedwait of a pending signal", func() string {
		return blocked(func() string {
			call(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), 10)
			set := uint64(mask1)
			t := syscall.Timespec{Sec: 1}
			return count(syscall.SYS_RT_SIGTIMEDWAIT, at(&set), 0, at(&t), 8)
		})
	}},
	{"rt_sigtimedwait without a signal", func() string {
		return blocked(func() string {
			set := uint64(mask1)
			t := syscall.Timespec{Nsec: 1e6}
			return count(syscall.SYS_RT_SIGTIMEDWAIT, at(&set), 0, at(&t), 8)
		})
	}},
	{"signalfd4", func() string {
		return blocked(func() string {
			set := uint64(mask1)
			fd, errno := call(289, ^uintptr(0), at(&set), 8, syscall.O_NONBLOCK)
			if errno != 0 {
				return word(errno)
			}
			call(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), 10)
			b := make([]byte, 128)
			n, err := syscall.Read(int(fd), b)
			return joined(word(err), fmt.Sprint(n, b[0]))
		})
	}},
	{"rt_sigprocmask with an unknown command", func() string { var s uint64; return outcome(syscall.SYS_RT_SIGPROCMASK, 9, at(&s), 0, 8) }},
	{"rt_sigprocmask with a set of four bytes", func() string { var s uint64; return outcome(syscall.SYS_RT_SIGPROCMASK, 0, at(&s), 0, 4) }},
	{"rt_sigaction of SIGKILL", func() string { var a [4]uint64; return outcome(syscall.SYS_RT_SIGACTION, 9, at(&a), 0, 8) }},
	{"rt_sigaction that reads", func() string { var a [4]uint64; return outcome(syscall.SYS_RT_SIGACTION, 11, 0, at(&a), 8) }},
	{"sigaltstack that reads", func() string { var s [3]uint64; return outcome(syscall.SYS_SIGALTSTACK, 0, at(&s)) }},
	{"a fault is a panic with its address", func() string {
		a := pages(1, 0)
		call(syscall.SYS_MPROTECT, a, page, 0)
		return yes(faults(a))
	}},
	{"division by zero", func() (s string) {
		defer func() { s = fmt.Sprint(recover()) }()
		zero := 0
		return fmt.Sprint(1 / zero)
	}},
	{"SIGPIPE for a socket does not end the program", func() string {
		p, _ := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		syscall.Close(p[1])
		_, err := syscall.Write(p[0], []byte("x"))
		return word(err)
	}},
	{"nanosleep that a signal interrupts", func() string {
		c, done := expects(syscall.SIGUSR1)
		defer done()
		tid := make(chan int)
		ended := make(chan string)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			tid <- syscall.Gettid()
			t := syscall.Timespec{Sec: 20}
			s := outcome(syscall.SYS_NANOSLEEP, at(&t), 0)
			ended <- s
		}()
		id := <-tid
		for {
			call(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(id), 10)
			select {
			case s := <-ended:
				return joined(s, came(c))
			case <-time.After(time.Millisecond):
			}
		}
	}},
	{"pause that a signal interrupts", func() string {
		_, done := expects(syscall.SIGUSR1)
		defer done()
		tid := make(chan int)
		ended := make(chan string)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			tid <- syscall.Gettid()
			ended <- outcome(syscall.SYS_PAUSE)
		}()
		id := <-tid
		for {
			call(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(id), 10)
			select {
			case s := <-ended:
				return s
			case <-time.After(time.Millisecond):
			}
		}
	}},
}
