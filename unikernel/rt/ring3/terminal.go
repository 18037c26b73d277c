package ring3

import (
	"fmt"
	"sync"
	"syscall"

	"loam/abi/linux"
	"loam/posix"
	"loam/task"
	"loam/unikernel/channel"
)

// The terminal of the first program is a pseudo-terminal. Programs use its slave, with job control, and this program
// has its master. Two goroutines copy between the master and the user's terminal. The user's terminal is in raw mode,
// so each key arrives immediately and unchanged.

// console is the pseudo-terminal, together with the streams of the user's terminal.
type console struct {
	process       *posix.Process
	master, slave int  // descriptors of the two ends, in process
	errors        bool // standard error of the loam command is the terminal as well

	writing sync.Mutex // held while output is copied
}

// Descriptors of the standard streams.
const (
	stdin = iota
	stdout
	stderr
)

// newConsole creates the pseudo-terminal with the settings and the size of the user's terminal, which becomes raw.
func newConsole(p *posix.Process) (*console, error) {
	master, errno := p.OpenAt(linux.AT_FDCWD, "/dev/ptmx", linux.O_RDWR|linux.O_NONBLOCK|linux.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, fmt.Errorf("/dev/ptmx: %w", errno)
	}
	p.Terminal(master, linux.TIOCSPTLCK, make([]byte, 4))
	slave, errno := p.TerminalValue(master, linux.TIOCGPTPEER, linux.O_RDWR|linux.O_CLOEXEC)
	if errno != 0 {
		return nil, fmt.Errorf("/dev/pts: %w", errno)
	}
	p.SetConsole(slave)
	c := &console{process: p, master: master, slave: slave}
	settings := make([]byte, linux.SizeofTermios)
	if p.Terminal(stdin, linux.TCGETS, settings) == 0 {
		p.Terminal(slave, linux.TCSETS, settings)
		raw(settings)
		p.Terminal(stdin, linux.TCSETS, settings)
	}
	c.errors = p.Terminal(stderr, linux.TCGETS, settings) == 0
	c.resize()
	return c, nil
}

// raw changes settings to those of cfmakeraw(3).
func raw(settings []byte) {
	t := linux.ParseTermios(settings)
	t.Input &^= linux.IGNBRK | linux.BRKINT | linux.PARMRK | linux.ISTRIP | linux.INLCR | linux.IGNCR | linux.ICRNL | linux.IXON
	t.Output &^= linux.OPOST
	t.Local &^= linux.ECHO | linux.ECHONL | linux.ICANON | linux.ISIG | linux.IEXTEN
	t.Chars[linux.VMIN], t.Chars[linux.VTIME] = 1, 0
	t.Put(settings)
}

// streams returns the descriptors for the first program. Its standard error is not the terminal if the standard error
// of the loam command is not.
func (c *console) streams() []int {
	if c.errors {
		return []int{c.slave, c.slave, c.slave}
	}
	return []int{c.slave, c.slave}
}

// resize gives the pseudo-terminal the size of the user's window. If the size has changed, programs in the foreground
// receive SIGWINCH.
func (c *console) resize() {
	size := make([]byte, linux.SizeofWinsize)
	if c.process.Terminal(stdin, linux.TIOCGWINSZ, size) == 0 {
		c.process.Terminal(c.master, linux.TIOCSWINSZ, size)
	}
}

// start starts the copying goroutines. It closes the slave, which the first program has opened by then.
func (c *console) start() {
	c.process.Close(c.slave)
	go c.typeAll()
	go c.showAll()
}

// typeAll copies the user's input to the master of the pseudo-terminal. At the end of the input, the user's
// terminal no longer exists, and typeAll hangs up the pseudo-terminal.
func (c *console) typeAll() {
	room := make([]byte, channel.MaxPayload)
	for {
		n, errno := c.process.Read(stdin, room)
		if n <= 0 || errno != 0 {
			c.hangUp()
			return
		}
		for b := room[:n]; len(b) > 0; {
			fds := []posix.PollFD{{FD: c.master, Events: posix.PollOut}}
			c.process.Poll(fds, -1)
			k, errno := c.process.Write(c.master, b)
			switch errno {
			case 0:
				b = b[k:]
			case linux.EAGAIN:
			default:
				return
			}
		}
	}
}

// hangUp closes the master: the session receives SIGHUP (termios(3), Modem disconnect).
func (c *console) hangUp() { c.process.Close(c.master) }

// showAll copies the programs' output to the user's terminal until the slave is closed.
func (c *console) showAll() {
	for {
		fds := []posix.PollFD{{FD: c.master, Events: posix.PollIn}}
		if _, errno := c.process.Poll(fds, -1); errno != 0 || !c.show() {
			return
		}
	}
}

// show copies all output that is available now. It returns false at the end of the output.
func (c *console) show() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	room := make([]byte, channel.MaxPayload)
	for {
		n, errno := c.process.Read(c.master, room)
		switch {
		case errno == linux.EAGAIN:
			return true
		case errno != 0 || n <= 0:
			return false
		}
		c.process.Write(stdout, room[:n]) // Write fails only if the user's terminal no longer exists
	}
}

// suspend stops the loam command, as the shell from which the user has started it expects of a job that Ctrl-Z stops. It
// returns when the command continues.
func (c *console) suspend() {
	c.show()
	c.process.HostTerminal(stdin, channel.Suspend, nil)
	c.resize()
}

// signal handles a signal that was sent to the loam command, for a program with a terminal. It returns false if the
// program should simply receive the signal. SIGHUP is a hangup of the terminal. SIGTERM is a hangup too if the program
// ignores it, as an interactive shell does: nothing else would end it.
func (c *console) signal(p *task.Process, n syscall.Signal) bool {
	switch {
	case n == syscall.SIGWINCH:
		c.resize()
	case n == syscall.SIGHUP, n == syscall.SIGTERM && p.Ignores(int(n)):
		c.hangUp()
	default:
		return false
	}
	return true
}
