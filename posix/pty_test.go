package posix

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/devpts"
	"loam/fs/memfs"
	"loam/fs/pseudo"
)

// crew is a system of processes for the tests of terminals, with the signals that terminals have sent to them.
type crew struct {
	mu       sync.Mutex
	sessions map[int32]int32 // session of each process group, by the number of the group
	sent     []string
}

func (c *crew) SignalGroup(group int32, signal int)   { c.note("group", group, signal) }
func (c *crew) SignalProcess(pid int32, signal int)   { c.note("process", pid, signal) }
func (c *crew) SessionOf(group int32) (session int32) { return c.sessions[group] }

func (c *crew) note(kind string, id int32, signal int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, fmt.Sprintf("%d to %s %d", signal, kind, id))
}

// wantSent checks the signals that were sent since the last call of wantSent.
func (c *crew) wantSent(t *testing.T, what string, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.sent, want) {
		t.Errorf("%s: sent %q, want %q", what, c.sent, want)
	}
	c.sent = nil
}

// hand is one process of a crew, which is the system of processes of a test.
type hand struct {
	*crew
	pid, group, session int32
	ignores             bool
	orphaned            bool
}

func (h *hand) IDs() (pid, group, session int32) { return h.pid, h.group, h.session }
func (h *hand) Ignores(int) bool                 { return h.ignores }
func (h *hand) Orphaned() bool                   { return h.orphaned }

// withTerminals returns a process of a system with pseudo-terminals.
func withTerminals(t *testing.T) *Process {
	t.Helper()
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	terminals := devpts.New()
	if err := v.Mkdir(v.Root, "/dev", 0o755); err != nil {
		t.Fatal(err)
	}
	err := pseudo.Devices(v)
	if err == nil {
		err = v.Mkdir(v.Root, "/dev/pts", 0o755)
	}
	place, err2 := v.LookupDir(v.Root, "/dev/pts")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if err := v.Tree.Mount(terminals, place, false); err != nil {
		t.Fatal(err)
	}
	p := New(Options{Files: v.Tree, Terminals: terminals, Credentials: Credentials{PID: 7}})
	t.Cleanup(p.fds.RemoveAll)
	return p
}

// openPair opens a terminal, without making it a controlling terminal.
func openPair(t *testing.T, p *Process, flags int) (master, slave int) {
	t.Helper()
	master, errno := p.OpenAt(linux.AT_FDCWD, "/dev/ptmx", linux.O_RDWR|flags, 0)
	ok(t, errno)
	n := make([]byte, 4)
	ok(t, p.Terminal(master, linux.TIOCGPTN, n))
	path := fmt.Sprintf("/dev/pts/%d", intOf(n))
	_, errno = p.OpenAt(linux.AT_FDCWD, path, linux.O_RDWR|linux.O_NOCTTY, 0)
	wantErrno(t, errno, linux.EIO, "open of a locked terminal")
	ok(t, p.Terminal(master, linux.TIOCSPTLCK, make([]byte, 4)))
	slave, errno = p.OpenAt(linux.AT_FDCWD, path, linux.O_RDWR|linux.O_NOCTTY|flags, 0)
	ok(t, errno)
	return master, slave
}

// A terminal has a file and a name as long as its master is open; fchmod(2) on a descriptor of the terminal changes
// the mode of that file.
func TestTerminalFile(t *testing.T) {
	p := withTerminals(t)
	master, slave := openPair(t, p, 0)
	if name := p.Name(slave); name != "/dev/pts/0" {
		t.Errorf("its name is %s", name)
	}
	ok(t, p.Fchmod(slave, 0o600))
	ok(t, p.Fchown(slave, 5, -1))
	st, errno := p.StatAt(linux.AT_FDCWD, "/dev/pts/0", 0)
	ok(t, errno)
	own, errno := p.Fstat(slave)
	ok(t, errno)
	if st != own || st.Mode != fs.CharDevice|0o600 || st.UID != 5 || st.Attr.Device != (fs.Device{Major: 136}) {
		t.Errorf("by name %+v, by descriptor %+v", st, own)
	}
	ok(t, p.Close(master))
	_, errno = p.OpenAt(linux.AT_FDCWD, "/dev/pts/0", linux.O_RDWR, 0)
	wantErrno(t, errno, linux.ENOENT, "open of a terminal that is gone")
	_, errno = p.OpenAt(linux.AT_FDCWD, "/dev/tty", linux.O_RDWR, 0)
	wantErrno(t, errno, linux.ENXIO, "open of /dev/tty without a terminal")
}

// The test checks events, reads and writes of both ends before the slave is opened, after it is closed, and after the
// master is closed. The expected values are those that Linux 6.18 returned.
func TestTerminalEnds(t *testing.T) {
	p := withTerminals(t)
	events := func(fd int) Events {
		fds := []PollFD{{FD: fd, Events: PollIn | PollOut | PollPri}}
		p.Poll(fds, 0)
		return fds[0].Revents
	}
	room := make([]byte, 100)
	master, slave := openPair(t, p, linux.O_NONBLOCK)
	if e := events(master); e != PollOut {
		t.Errorf("the master of an idle terminal: %#x", e)
	}
	write(t, p, slave, "out")
	ok(t, p.Close(slave))
	if e := events(master); e != PollIn|PollOut|PollHup {
		t.Errorf("the master with output and without slaves: %#x", e)
	}
	if got := read(t, p, master); got != "out" {
		t.Errorf("read %q", got)
	}
	_, errno := p.Read(master, room)
	wantErrno(t, errno, linux.EIO, "read from a master without slaves")
	write(t, p, master, "kept\n")
	slave, errno = p.OpenAt(linux.AT_FDCWD, "/dev/pts/0", linux.O_RDWR|linux.O_NONBLOCK, 0)
	ok(t, errno)
	if e := events(master) &^ PollIn; e != PollOut {
		t.Errorf("the master of a terminal that is open again: %#x", e)
	}
	if got := read(t, p, slave); got != "kept\n" {
		t.Errorf("read %q", got)
	}
	write(t, p, master, "lost\n")
	ok(t, p.Close(master))
	if e := events(slave); e != PollIn|PollOut|PollErr|PollHup {
		t.Errorf("the slave after a hangup: %#x", e)
	}
	if n, errno := p.Read(slave, room); n != 0 || errno != 0 {
		t.Errorf("read after a hangup: %d, %v", n, errno)
	}
	_, errno = p.Write(slave, []byte("x"))
	wantErrno(t, errno, linux.EIO, "write after a hangup")
	wantErrno(t, p.Terminal(slave, linux.TCGETS, make([]byte, linux.SizeofTermios)), linux.EIO, "TCGETS after a hangup")
	wantErrno(t, p.Terminal(slave, linux.TIOCSPGRP, make([]byte, 4)), linux.ENOTTY, "TIOCSPGRP after a hangup")
}

// The test makes requests that only the master or only the slave supports, and checks the errors of the other end.
func TestTerminalRequests(t *testing.T) {
	p := withTerminals(t)
	master, slave := openPair(t, p, 0)
	for _, c := range []struct {
		request     int
		ofM, ofS    Errno
		value, size int
	}{
		{linux.TIOCGPTN, 0, linux.ENOTTY, 0, 4},
		{linux.TIOCGPKT, 0, linux.ENOTTY, 0, 4},
		{linux.TIOCGPTLCK, 0, linux.ENOTTY, 0, 4},
		{linux.TIOCGSID, linux.ENOTTY, linux.ENOTTY, 0, 4},
		{linux.TIOCGPGRP, 0, linux.ENOTTY, 0, 4},
		{linux.TIOCGETD, 0, 0, 0, 4},
		{linux.TIOCGDEV, 0, 0, 0x8800, 4},
		{linux.TIOCGEXCL, 0, 0, 0, 4},
		{linux.TIOCSTI, linux.EIO, linux.EIO, 0, 1},
	} {
		for fd, want := range map[int]Errno{master: c.ofM, slave: c.ofS} {
			arg := make([]byte, c.size)
			errno := p.Terminal(fd, c.request, arg)
			wantErrno(t, errno, want, fmt.Sprintf("request %#x of %d", c.request, fd))
			if errno == 0 && intOf(arg) != c.value {
				t.Errorf("request %#x: %#x, want %#x", c.request, intOf(arg), c.value)
			}
		}
	}
	for _, c := range []struct {
		request, arg int
		ofM, ofS     Errno
	}{
		{linux.TCSBRK, 0, 0, 0}, {linux.TCXONC, 9, linux.EINVAL, linux.EINVAL}, {linux.TCFLSH, 9, linux.EINVAL, linux.EINVAL},
		{linux.TIOCSIG, 9, linux.EINVAL, linux.ENOTTY}, {linux.TIOCSIG, linux.SIGINT, 0, linux.ENOTTY},
		{linux.TIOCNOTTY, 0, linux.ENOTTY, linux.ENOTTY}, {linux.TIOCGPTPEER, linux.O_RDWR, 0, linux.EIO},
	} {
		for fd, want := range map[int]Errno{master: c.ofM, slave: c.ofS} {
			_, errno := p.TerminalValue(fd, c.request, c.arg)
			wantErrno(t, errno, want, fmt.Sprintf("request %#x of %d", c.request, fd))
		}
	}
}

// Reads without ICANON wait for a number of bytes and for a time (termios(3), VMIN and VTIME).
func TestTerminalTimes(t *testing.T) {
	const tenth = time.Second / 10
	for _, c := range []struct {
		least, tenths uint8
		typed         []time.Duration // when each character is typed, since the start of the read
		want          int
		after         time.Duration
	}{
		{0, 0, nil, 0, 0},
		{0, 5, nil, 0, 5 * tenth},
		{0, 5, []time.Duration{2 * tenth}, 1, 2 * tenth},
		{3, 0, []time.Duration{1 * tenth, 9 * tenth, 20 * tenth}, 3, 20 * tenth},
		{3, 5, []time.Duration{30 * tenth}, 1, 35 * tenth},
		{3, 5, []time.Duration{30 * tenth, 34 * tenth}, 2, 39 * tenth},
		{9, 5, []time.Duration{1 * tenth, 2 * tenth, 3 * tenth}, 3, 8 * tenth},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := withTerminals(t)
			master, slave := openPair(t, p, 0)
			b := make([]byte, linux.SizeofTermios)
			ok(t, p.Terminal(slave, linux.TCGETS, b))
			s := linux.ParseTermios(b)
			s.Local &^= linux.ICANON | linux.ECHO
			s.Chars[linux.VMIN], s.Chars[linux.VTIME] = c.least, c.tenths
			s.Put(b)
			ok(t, p.Terminal(slave, linux.TCSETS, b))
			start := time.Now()
			for _, at := range c.typed {
				time.AfterFunc(at, func() { p.Write(master, []byte("x")) })
			}
			n, errno := p.Read(slave, make([]byte, 20))
			if n != c.want || errno != 0 || time.Since(start) != c.after {
				t.Errorf("VMIN %d, VTIME %d, typed at %v: %d bytes, %v, after %v; want %d after %v", c.least, c.tenths, c.typed, n, errno, time.Since(start), c.want, c.after)
			}
		})
	}
}

// A reader in blocking mode gets a line when it is complete; a writer waits for the master.
func TestTerminalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := withTerminals(t)
		master, slave := openPair(t, p, 0)
		go func() {
			synctest.Wait()
			write(t, p, master, "half")
			synctest.Wait()
			write(t, p, master, " and half\n")
		}()
		if got := read(t, p, slave); got != "half and half\n" {
			t.Errorf("read %q", got)
		}
		long := make([]byte, 100<<10)
		var wg sync.WaitGroup
		wg.Go(func() { write(t, p, slave, string(long)) })
		total := len("half and half\r\n")
		for room := make([]byte, 4096); total > 0 || len(long) > 0; {
			n, errno := p.Read(master, room)
			ok(t, errno)
			if total += n; total >= len(long)+2*len("half and half\r\n") {
				break
			}
		}
		wg.Wait()
	})
}

// A terminal that a session leader opens becomes its controlling terminal. Its keys send signals to the foreground group,
// which the leader chooses; processes in the background are stopped when they read (tty_ioctl(4), termios(3)).
func TestJobControl(t *testing.T) {
	p := withTerminals(t)
	c := &crew{sessions: map[int32]int32{10: 10, 11: 10, 12: 10, 20: 20}}
	p.SetGroups(c)
	master, slave := openPair(t, p, linux.O_NONBLOCK)
	leader, job := p.Fork(10, 0), p.Fork(11, 0)
	leader.SetMember(&hand{crew: c, pid: 10, group: 10, session: 10})
	worker := &hand{crew: c, pid: 11, group: 11, session: 10}
	job.SetMember(worker)
	_, errno := job.OpenAt(linux.AT_FDCWD, "/dev/tty", linux.O_RDWR, 0)
	wantErrno(t, errno, linux.ENXIO, "/dev/tty of a session without a terminal")
	_, errno = job.OpenAt(linux.AT_FDCWD, "/dev/pts/0", linux.O_RDWR, 0)
	ok(t, errno)
	_, errno = job.TerminalValue(slave, linux.TIOCSCTTY, 0)
	wantErrno(t, errno, linux.EPERM, "TIOCSCTTY by a process that leads no session")
	_, errno = leader.OpenAt(linux.AT_FDCWD, "/dev/pts/0", linux.O_RDWR, 0)
	ok(t, errno)
	tty, errno := job.OpenAt(linux.AT_FDCWD, "/dev/tty", linux.O_RDWR|linux.O_NONBLOCK, 0)
	ok(t, errno)

	write(t, p, master, "\x03")
	c.wantSent(t, "Ctrl-C", "2 to group 10")
	setGroup := func(q *Process, group int) Errno {
		b := make([]byte, 4)
		putInt(b, group)
		return q.Terminal(slave, linux.TIOCSPGRP, b)
	}
	wantErrno(t, setGroup(leader, 20), linux.EPERM, "a group of another session")
	wantErrno(t, setGroup(leader, 99), linux.ESRCH, "no group")
	wantErrno(t, setGroup(job, 11), linux.EINTR, "TIOCSPGRP from the background")
	c.wantSent(t, "TIOCSPGRP from the background", "22 to group 11")
	for _, ignores := range []bool{false, true} {
		worker.ignores = ignores
		want := map[bool]Errno{false: linux.EINTR, true: linux.EIO}[ignores]
		_, errno = job.Read(tty, make([]byte, 1))
		wantErrno(t, errno, want, "read from the background")
	}
	c.wantSent(t, "read from the background", "21 to group 11")
	worker.ignores, worker.orphaned = false, true
	_, errno = job.Read(tty, make([]byte, 1))
	wantErrno(t, errno, linux.EIO, "read of an orphan from the background")
	write(t, job, tty, "printed")
	ok(t, setGroup(leader, 11))
	write(t, p, master, "\x1a")
	c.wantSent(t, "Ctrl-Z", "20 to group 11")
	ok(t, p.Terminal(master, linux.TIOCSWINSZ, []byte{1, 0, 2, 0, 0, 0, 0, 0}))
	ok(t, p.Terminal(master, linux.TIOCSWINSZ, []byte{1, 0, 2, 0, 0, 0, 0, 0}))
	c.wantSent(t, "a new size", "28 to group 11")
	if d, group := p.TerminalOf(10); d != (fs.Device{Major: 136}) || group != 11 {
		t.Errorf("the terminal of the session is %v with group %d", d, group)
	}
	leader.EndSession(10)
	c.wantSent(t, "the end of the leader", "1 to group 11")
	_, errno = job.OpenAt(linux.AT_FDCWD, "/dev/tty", linux.O_RDWR, 0)
	wantErrno(t, errno, linux.ENXIO, "/dev/tty after the end of the leader")
}

// When the master is closed, the session leader receives SIGHUP and SIGCONT. When the leader has ended, the processes in
// the foreground receive them.
func TestHangup(t *testing.T) {
	p := withTerminals(t)
	c := &crew{sessions: map[int32]int32{10: 10, 11: 10}}
	p.SetGroups(c)
	master, slave := openPair(t, p, 0)
	leader := p.Fork(10, 0)
	leader.SetMember(&hand{crew: c, pid: 10, group: 10, session: 10})
	_, errno := leader.TerminalValue(slave, linux.TIOCSCTTY, 0)
	ok(t, errno)
	b := make([]byte, 4)
	putInt(b, 11)
	ok(t, leader.Terminal(slave, linux.TIOCSPGRP, b))
	ok(t, leader.Close(master))
	ok(t, p.Close(master))
	c.wantSent(t, "the end of the master", "1 to process 10", "18 to process 10")
	leader.EndSession(10)
	c.wantSent(t, "the end of the leader", "1 to group 11", "18 to group 11")
}

// intOf and putInt access an int32 in memory.
func intOf(b []byte) int     { return int(int32(binary.LittleEndian.Uint32(b))) }
func putInt(b []byte, v int) { binary.LittleEndian.PutUint32(b, uint32(v)) }
