// Package ring3 is the program in ring 0 that runs an unmodified Linux program in ring 3. The loam command builds it when
// it is given an ELF file instead of a Go package.
package ring3

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/credential"
	"loam/task"
	"loam/unikernel/rt"
)

// Statuses of shells for a program that does not start.
const (
	statusNotExecutable = 126
	statusNotFound      = 127
	statusSignal        = 128 // added to the number of the signal that has ended the program
)

// Main runs the program of the command line, and exits with its status.
func Main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "loam: there is no program to run")
		return statusNotFound
	}
	addHeadroom(machine{}.Pages() * mem.PageSize)
	s, err := NewSystem()
	if err == nil {
		err = ShowProcesses(s, false)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loam:", err)
		return statusNotExecutable
	}
	u, err := credential.Find(rt.User(), readFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "loam: -u", rt.User()+":", err)
		return statusNotExecutable
	}
	q := task.Program{Path: find(args[0]), Args: args, Env: u.Environment(os.Environ()), Process: rt.Process(), Credentials: &u.Set}
	var c *console
	if rt.WantsTerminal() {
		if c, err = newConsole(rt.Process()); err != nil {
			fmt.Fprintf(os.Stderr, "loam: there is no terminal for the program: %v: use -t=false\n", err)
			return statusNotExecutable
		}
		q.Streams, q.Terminal = c.streams(), true
	}
	p, err := s.Start(q)
	if err != nil {
		return refused(args[0], err)
	}
	go s.WriteBack(context.Background())
	go s.Observe(context.Background())
	if c != nil {
		c.start()
	}
	return statusOf(attend(p, c))
}

// attend forwards signals and changes of the terminal's size until the first process ends, and returns the exit status of
// that process. c is nil if the process has no terminal.
func attend(p *task.Process, c *console) int32 {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	for {
		select {
		case n := <-signals:
			if c == nil || !c.signal(p, n.(syscall.Signal)) {
				p.Signal(int(n.(syscall.Signal)))
			}
		case <-p.Stopped():
			c.suspend()
			p.Continue()
		case <-p.Done():
			if c != nil {
				c.show()
			}
			return p.Status()
		}
	}
}

// defaultPath lists the folders that are searched for programs if the variable PATH is not set.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// find returns the path of a program. A name without a slash is looked for in the folders of PATH, and then in those
// of defaultPath: the host's PATH need not fit the program's root. It returns the name itself if there is none.
func find(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH") + ":" + defaultPath) {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); filepath.IsAbs(path) && err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path
		}
	}
	return name
}

// refused prints why a program cannot be started, and returns the exit status that a shell would return.
func refused(path string, err error) int {
	what := err.Error()
	var errno linux.Errno
	if errors.As(err, &errno) && errno == linux.ENOENT {
		what = "the file, or the interpreter that it names, does not exist"
	}
	fmt.Fprintln(os.Stderr, "loam:", path+":", strings.TrimSpace(what))
	if errno == linux.ENOENT {
		return statusNotFound
	}
	return statusNotExecutable
}

// statusOf returns the exit status of a program as a shell reports it.
func statusOf(status int32) int {
	if n := status & 0x7f; n != 0 {
		return statusSignal + int(n)
	}
	return int(status >> 8 & 0xff)
}
