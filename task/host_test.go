package task

import (
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/mem/memtest"
	"loam/posix"
	"loam/posix/call"
	"loam/task/signal"
	"loam/task/spawn"
)

// hosted is a world (see task_test.go) whose process 1 is a program in ring 0.
type hosted struct {
	*world
	*Host
	memory spawn.Memory
	got    []int // numbers of the signals that process 1 has received
}

// withHost runs f with programs as files /0, /1 and so on. It checks that all memory, spaces and threads are released.
func withHost(t *testing.T, f func(h *hosted), programs ...func(u *user)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &simulated{t: t, memory: memtest.NewMemory(8), programs: programs, started: time.Now()}
		w := &world{T: t, machine: m, root: posix.New(posix.Options{Credentials: posix.Credentials{PID: 1}})}
		w.system = New(Config{Machine: m, Started: m.started, CPUs: 2})
		h := &hosted{world: w}
		h.Host = w.system.NewHost(HostConfig{
			Process: w.root, Signal: func(n int) { h.got = append(h.got, n) }, Executable: "/0",
			Ignored: func() signal.Set { return signal.SetOf(linux.SIGHUP) },
		})
		w.mountProc()
		for i := range programs {
			w.file("/"+string(rune('0'+i)), elf(i))
		}
		f(h)
		w.kill()
		synctest.Wait()
		w.system.files.Drop()
		if m.open != 0 || m.memory.Used() != 0 || len(w.system.tasks) != 0 || len(w.system.processes) != 1 {
			t.Errorf("left: %d spaces and threads, %d pages, %d tasks, %d processes", m.open, m.memory.Used(), len(w.system.tasks), len(w.system.processes))
		}
	})
}

// do makes a system call as the program in ring 0 does.
func (h *hosted) do(number int, args ...uint64) int64 {
	var a [6]uint64
	copy(a[:], args)
	n, errno := h.Call(call.Caller{Process: h.root, Memory: &h.memory}, number, call.Args{A1: a[0], A2: a[1], A3: a[2], A4: a[3], A5: a[4], A6: a[5]})
	if errno != 0 {
		return -int64(errno)
	}
	return int64(n)
}

func (h *hosted) spawn(q spawn.Attributes) uint64 {
	h.Helper()
	pid, _, errno := h.Spawn(q)
	if errno != 0 {
		h.Fatal(errno)
	}
	return uint64(pid)
}

// A program in ring 0 waits for its children, and receives SIGCHLD.
func TestHostWaits(t *testing.T) {
	withHost(t, func(h *hosted) {
		is(t, "no child", h.do(linux.SYS_WAIT4, 1<<64-1, 0, 0, 0), failed(linux.ECHILD))
		at := h.memory.Store(make([]byte, 8))
		pid := h.spawn(spawn.Attributes{Path: "/0", Args: []string{"0"}})
		is(t, "wait", h.do(linux.SYS_WAIT4, pid, at, 0, 0), int64(pid))
		status, _ := h.memory.Pointer(at)
		is(t, "status", int64(status), 7<<8)
		pid = h.spawn(spawn.Attributes{Path: "/1", Args: []string{"1"}})
		is(t, "not yet", h.do(linux.SYS_WAIT4, pid, at, linux.WNOHANG, 0), 0)
		is(t, "kill", h.do(linux.SYS_KILL, pid, linux.SIGTERM), 0)
		is(t, "wait", h.do(linux.SYS_WAIT4, pid, at, 0, 0), int64(pid))
		status, _ = h.memory.Pointer(at)
		is(t, "status", int64(status), linux.SIGTERM)
		is(t, "kill the dead", h.do(linux.SYS_KILL, pid, 0), failed(linux.ESRCH))
		if len(h.got) != 2 || h.got[0] != linux.SIGCHLD {
			t.Errorf("signals %v", h.got)
		}
	}, func(u *user) {
		is(t, "SIGHUP is ignored", u.call(linux.SYS_KILL, uint64(u.call(linux.SYS_GETPID)), linux.SIGHUP), 0)
		exit(u, 7)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}

// While a process is created, another thread may use its pidfd, and wait for it. If the process is not started, the wait ends,
// and the pidfd refers to no process.
func TestProcessNotStarted(t *testing.T) {
	withHost(t, func(h *hosted) {
		node, err := h.system.tree.Fork(h.system.root, false)
		if err != nil {
			t.Fatal(err)
		}
		p := newProcess(h.system, node)
		fd, errno := h.root.InstallProcess(p.ref, 0)
		is(t, "InstallProcess", -int64(errno), 0)
		waited := make(chan int64)
		go func() { waited <- h.do(linux.SYS_WAIT4, 1<<64-1, 0, 0, 0) }()
		synctest.Wait() // the wait has begun
		noProcess := func() {
			t.Helper()
			is(t, "pidfd_getfd", h.do(linux.SYS_PIDFD_GETFD, uint64(fd), 0, 0), failed(linux.ESRCH))
			is(t, "process_madvise", h.do(linux.SYS_PROCESS_MADVISE, uint64(fd), 0, 0, mem.AdviseCold, 0), failed(linux.ESRCH))
			is(t, "process_mrelease", h.do(linux.SYS_PROCESS_MRELEASE, uint64(fd), 0), failed(linux.ESRCH))
			is(t, "pidfd_send_signal", h.do(linux.SYS_PIDFD_SEND_SIGNAL, uint64(fd), 0, 0, 0), failed(linux.ESRCH))
		}
		noProcess()
		h.system.undo(node)
		is(t, "wait4", <-waited, failed(linux.ECHILD))
		noProcess()
		other := newProcess(h.system, h.system.root)
		h.root.CloseProcess(fd, other.ref)
		is(t, "the pidfd of another process", h.do(linux.SYS_PIDFD_SEND_SIGNAL, uint64(fd), 0, 0, 0), failed(linux.ESRCH))
		h.root.CloseProcess(fd, p.ref)
		is(t, "a closed pidfd", h.do(linux.SYS_PIDFD_SEND_SIGNAL, uint64(fd), 0, 0, 0), failed(linux.EBADF))
	})
}

// A program that cannot be loaded leaves no child, and no open descriptor.
func TestHostSpawnFails(t *testing.T) {
	withHost(t, func(h *hosted) {
		h.file("/text", []byte("no program"))
		for _, c := range []struct {
			q    spawn.Attributes
			want linux.Errno
		}{
			{spawn.Attributes{Path: "/none"}, linux.ENOENT},
			{spawn.Attributes{Path: "/text"}, linux.ENOEXEC},
			{spawn.Attributes{Path: "/0", Dir: "/none"}, linux.ENOENT},
			{spawn.Attributes{Path: "/0", Files: []int{99}}, linux.EBADF},
			{spawn.Attributes{Path: "/0", Group: true, GroupID: 77}, linux.EPERM},
			{spawn.Attributes{Path: "/0", Ambient: []int{99}}, linux.EINVAL},
			{spawn.Attributes{Path: "/0", Root: "/none", ProcessFD: true}, linux.ENOENT},
			{spawn.Attributes{Path: "/0", DeathSignal: 99}, linux.EINVAL},
		} {
			if _, fd, errno := h.Spawn(c.q); errno != c.want || fd != -1 {
				t.Errorf("%+v: %v, descriptor %d, want %v", c.q, errno, fd, c.want)
			}
		}
		is(t, "children", h.do(linux.SYS_WAIT4, 1<<64-1, 0, 0, 0), failed(linux.ECHILD))
		is(t, "descriptors", int64(len(h.root.Descriptors())), 0)
	}, func(u *user) { exit(u, 0) })
}

// Orphans leave no zombies. A child may signal its parent, but not stop or kill it.
func TestHostAdopts(t *testing.T) {
	withHost(t, func(h *hosted) {
		pid := h.spawn(spawn.Attributes{Path: "/0", Args: []string{"0"}, Session: true})
		is(t, "session", h.do(linux.SYS_GETSID, pid), int64(pid))
		is(t, "wait", h.do(linux.SYS_WAIT4, 1<<64-1, 0, 0, 0), int64(pid))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		is(t, "children", h.do(linux.SYS_WAIT4, 1<<64-1, 0, 0, 0), failed(linux.ECHILD))
		for _, n := range h.got {
			if n != linux.SIGCHLD && n != linux.SIGUSR1 {
				t.Errorf("signals %v", h.got)
			}
		}
	}, func(u *user) {
		is(t, "parent", u.call(linux.SYS_GETPPID), 1)
		for _, n := range []uint64{linux.SIGUSR1, linux.SIGKILL, linux.SIGSTOP} {
			is(t, "kill", u.call(linux.SYS_KILL, 1, n), 0)
		}
		u.fork(1)
		exit(u, 0)
	}, func(u *user) {
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0)
		is(t, "new parent", u.call(linux.SYS_GETPPID), 1)
		exit(u, 0)
	})
}

// A child gets the chosen descriptors under their new numbers, also if old and new numbers overlap. It does not
// inherit others.
func TestHostFiles(t *testing.T) {
	withHost(t, func(h *hosted) {
		var fds []int
		for _, name := range []string{"/a", "/b", "/c"} {
			fd, errno := h.root.OpenAt(linux.AT_FDCWD, name, linux.O_CREAT|linux.O_RDWR|linux.O_CLOEXEC, 0o600)
			if errno != 0 {
				t.Fatal(errno)
			}
			h.root.Write(fd, []byte(name))
			fds = append(fds, fd)
		}
		pid := h.spawn(spawn.Attributes{Path: "/0", Args: []string{"0"}, Files: []int{fds[1], fds[0], -1, fds[1]}})
		is(t, "wait", h.do(linux.SYS_WAIT4, pid, 0, 0, 0), int64(pid))
		for _, fd := range fds {
			h.root.Close(fd)
		}
	}, func(u *user) {
		for fd, want := range map[uint64]int64{0: 'b', 1: 'a', 3: 'b'} {
			u.call(linux.SYS_PREAD64, fd, dataAt, 2, 0)
			if b := u.load32(dataAt) >> 8 & 0xff; int64(b) != want {
				t.Errorf("descriptor %d is %q", fd, rune(b))
			}
		}
		for _, fd := range []uint64{2, 4, 5} {
			is(t, "closed", u.call(linux.SYS_FCNTL, fd, linux.F_GETFD), failed(linux.EBADF))
		}
		exit(u, 0)
	})
}

// The user and the groups of a child are set before its program is loaded.
func TestHostUser(t *testing.T) {
	withHost(t, func(h *hosted) {
		pid := h.spawn(spawn.Attributes{Path: "/0", Args: []string{"0"}, User: &spawn.User{UID: 1000, GID: 1001, Groups: []uint32{7}}, DeathSignal: linux.SIGKILL})
		is(t, "wait", h.do(linux.SYS_WAIT4, pid, 0, 0, 0), int64(pid))
		pid = h.spawn(spawn.Attributes{Path: "/1", Args: []string{"1"}, User: &spawn.User{UID: 1000, GID: 1001}, Ambient: []int{linux.CAP_KILL}})
		is(t, "wait", h.do(linux.SYS_WAIT4, pid, 0, 0, 0), int64(pid))
	}, func(u *user) {
		is(t, "user", u.call(linux.SYS_GETUID), 1000)
		is(t, "group", u.call(linux.SYS_GETGID), 1001)
		is(t, "groups", u.call(linux.SYS_GETGROUPS, 0, 0), 1)
		is(t, "kill", u.call(linux.SYS_KILL, 1, 0), failed(linux.EPERM))
		exit(u, 0)
	}, func(u *user) {
		is(t, "kill with CAP_KILL", u.call(linux.SYS_KILL, 1, 0), 0)
		exit(u, 0)
	})
}
