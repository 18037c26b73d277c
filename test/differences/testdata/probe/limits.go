package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
)

// limit sets a resource limit to its present value and returns the result.
func limit(resource int) string {
	var r syscall.Rlimit
	err := syscall.Getrlimit(resource, &r)
	err2 := syscall.Setrlimit(resource, &r)
	return joined(word(err), word(err2))
}

var limits = []probe{
	{"getrlimit and setrlimit of 16 resources", func() string {
		s := ""
		for i := range 16 {
			s += limit(i) + "; "
		}
		return s
	}},
	{"getrlimit of an unknown resource", func() string { var r syscall.Rlimit; return word(syscall.Getrlimit(16, &r)) }},
	{"setrlimit, soft above hard", func() string { return word(syscall.Setrlimit(4, &syscall.Rlimit{Cur: 2, Max: 1})) }},
	{"RLIMIT_NOFILE holds", func() string {
		var was syscall.Rlimit
		syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was)
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 40, Max: was.Max})
		defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)
		var all []*os.File
		defer func() {
			for _, f := range all {
				f.Close()
			}
		}()
		for range 60 {
			f, err := os.Open("/dev/null")
			if err != nil {
				return word(err)
			}
			all = append(all, f)
		}
		return "ok"
	}},
	{"RLIMIT_NOFILE that is set is returned", func() string {
		var was, is syscall.Rlimit
		syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was)
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 400, Max: was.Max})
		syscall.Getrlimit(syscall.RLIMIT_NOFILE, &is)
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)
		return fmt.Sprint(is.Cur)
	}},
	{"RLIMIT_FSIZE holds", func() string {
		c, done := expects(syscall.SIGXFSZ)
		defer done()
		_ = c
		var was syscall.Rlimit
		syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was)
		syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: was.Max})
		defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was)
		_, err := file("big", nil).WriteAt([]byte("x"), 1000)
		return word(err)
	}},
	{"getrusage of the process, thread and children", func() string {
		var u syscall.Rusage
		return joined(word(syscall.Getrusage(0, &u)), yes(u.Utime.Nano()+u.Stime.Nano() > 0), yes(u.Maxrss > 0), word(syscall.Getrusage(1, &u)), word(syscall.Getrusage(-1, &u)))
	}},
	{"sysinfo", func() string {
		var s syscall.Sysinfo_t
		err := syscall.Sysinfo(&s)
		return joined(word(err), yes(s.Totalram > 0), yes(s.Freeram > 0), yes(s.Procs > 0), fmt.Sprint(s.Unit))
	}},
	{"uname names Linux and x86_64", func() string {
		var u syscall.Utsname
		err := syscall.Uname(&u)
		return joined(word(err), yes(u.Sysname[0] == 'L'), yes(u.Machine[0] == 'x'))
	}},
	{"getrandom", func() string {
		b := make([]byte, 16)
		return joined(count(318, at(&b[0]), 16, 0), count(318, at(&b[0]), 16, 1), count(318, at(&b[0]), 16, 2), count(318, at(&b[0]), 16, 4))
	}},
	{"getrandom with unknown flags", func() string { b := make([]byte, 16); return count(318, at(&b[0]), 16, 64) }},
	{"a memory limit of Go's is kept", func() string { was := debug.SetMemoryLimit(-1); return yes(was > 0) }},
	{"more than 1,000 descriptors", func() string {
		n := 0
		var all []*os.File
		for range 1500 {
			f, err := os.Open("/dev/null")
			if err != nil {
				break
			}
			all = append(all, f)
			n++
		}
		for _, f := range all {
			f.Close()
		}
		return yes(n == 1500)
	}},
}
