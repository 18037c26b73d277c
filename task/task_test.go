package task

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/fs/pseudo"
	"loam/mem/memtest"
	"loam/posix"
	"loam/task/signal"
)

const (
	rtSigreturn = linux.SYS_RT_SIGRETURN
	forkNumber  = linux.SYS_FORK
)

// world is a system with simulated programs. Program 0 is the first process.
type world struct {
	*testing.T
	machine *simulated
	system  *System
	root    *posix.Process
}

// run runs programs in a bubble of fake time until the first process ends, and returns its status. It checks that all
// memory, spaces and threads are released.
func run(t *testing.T, programs ...func(u *user)) (status int32) {
	t.Helper()
	return runIn(t, func(*world) func() { return func() {} }, programs...)
}

// runIn is like run, but calls prepare before the first process starts, and the function that prepare returns after all have
// ended.
func runIn(t *testing.T, prepare func(*world) (end func()), programs ...func(u *user)) (status int32) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &simulated{t: t, memory: memtest.NewMemory(8), programs: programs}
		var contents memfs.Source
		tree := fs.NewTree(memfs.New(memfs.Config{}))
		tree.SetMemory(memfs.New(memfs.Config{Source: &contents})) // for memfds, whose pages are released with the last descriptor
		w := &world{T: t, machine: m, root: posix.New(posix.Options{Files: tree, Credentials: posix.Credentials{PID: 1}})}
		m.started = time.Now()
		w.system = New(Config{Machine: m, Started: m.started, CPUs: 2})
		contents.Set(w.system.NewContent)
		w.mountProc()
		for i := range programs {
			w.file(fmt.Sprintf("/%d", i), elf(i))
		}
		end := prepare(w)
		p, err := w.system.Start(Program{Path: "/0", Args: []string{"zero", "one"}, Process: w.root})
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		status = p.Status()
		w.kill()
		synctest.Wait()
		end()
		w.system.files.Drop()
		if m.open != 0 || m.memory.Used() != 0 || len(w.system.tasks) != 0 || !w.system.futexes.Empty() {
			t.Errorf("left: %d spaces and threads, %d pages, %d tasks", m.open, m.memory.Used(), len(w.system.tasks))
		}
	})
	return status
}

// mountProc mounts /proc.
func (w *world) mountProc() {
	w.Helper()
	v := w.root.View()
	w.root.MkdirAt(linux.AT_FDCWD, "/proc", 0o555)
	place, err := v.Lookup(v.Root, "/proc", true)
	if err == nil {
		proc := pseudo.New(pseudo.ProcMagic)
		proc.Extend(w.system.Processes(func([]fs.Mounted) (mounts, info string) { return "mounts\n", "mountinfo\n" }))
		err = v.Tree.Mount(proc, place, false)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// kill ends all processes that are left.
func (w *world) kill() {
	w.system.mu.Lock()
	defer w.system.mu.Unlock()
	for _, p := range w.system.processes {
		p.end(linux.SIGKILL)
	}
}

func (w *world) file(path string, content []byte) {
	w.Helper()
	fd, errno := w.root.OpenAt(linux.AT_FDCWD, path, linux.O_CREAT|linux.O_RDWR|linux.O_CLOEXEC, 0o755)
	if errno != 0 {
		w.Fatal(errno)
	}
	w.root.Write(fd, content)
	w.root.Close(fd)
}

// is fails the test if got and want differ. The text what describes the value in the message.
func is(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func exit(u *user, status uint64) { u.call(linux.SYS_EXIT_GROUP, status) }

// failed returns the result of a system call that fails with an error.
func failed(e linux.Errno) int64 { return -int64(e) }

// wait4 reports whether a child has exited, and with which status, or by which signal it was killed. Without children
// it fails with ECHILD.
func TestWait(t *testing.T) {
	status := run(t, func(u *user) {
		is(t, "no child", u.call(linux.SYS_WAIT4, 1<<64-1, 0, 0, 0), failed(linux.ECHILD))
		child := u.fork(1)
		is(t, "none yet", u.call(linux.SYS_WAIT4, 1<<64-1, dataAt, linux.WNOHANG, 0), 0)
		is(t, "wait", u.call(linux.SYS_WAIT4, 1<<64-1, dataAt, 0, 0), child)
		is(t, "status", int64(u.load32(dataAt)), 7<<8)
		child = u.fork(2)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt, 0, 0), child)
		is(t, "signal", int64(u.load32(dataAt)), linux.SIGTERM)
		exit(u, 3)
	}, func(u *user) {
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0)
		exit(u, 7)
	}, func(u *user) {
		u.call(linux.SYS_KILL, uint64(u.call(linux.SYS_GETPID)), linux.SIGTERM)
		t.Error("the process is alive")
		exit(u, 0)
	})
	is(t, "the first process", int64(status), 3<<8)
}

// A process that is killed while it forks leaves no child: kill(-1) ends a fork bomb.
func TestKilledWhileForking(t *testing.T) {
	var inFork, killed chan struct{} // channels of the bubble of fake time
	run(t, func(u *user) {
		inFork, killed = make(chan struct{}), make(chan struct{})
		u.fork(1)
		<-inFork
		is(t, "kill", u.call(linux.SYS_KILL, 1<<64-1, linux.SIGKILL), 0)
		close(killed)
		is(t, "sleep", u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0), 0)
		is(t, "all are gone", u.call(linux.SYS_KILL, 1<<64-1, 0), failed(linux.ESRCH))
		exit(u, 0)
	}, func(u *user) {
		u.space.machine.forking = func() {
			close(inFork)
			<-killed
		}
		u.fork(2)
		t.Error("the killed process is alive")
	}, func(u *user) {
		u.call(linux.SYS_PAUSE)
		t.Error("the child is alive")
	})
}

// second stores a struct timespec of one second.
func second(u *user, at uint64) uint64 {
	u.store(at, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1), 0))
	return at
}

// Parent and child have copies of memory, and share pipes.
func TestForkCopiesMemory(t *testing.T) {
	run(t, func(u *user) {
		u.store32(dataAt, 1)
		is(t, "pipe", u.call(linux.SYS_PIPE2, dataAt+8, 0), 0)
		child := u.fork(1)
		is(t, "read", u.call(linux.SYS_READ, uint64(u.load32(dataAt+8)), dataAt+100, 10), 4)
		is(t, "of the child", int64(u.load32(dataAt+100)), 2)
		is(t, "of the parent", int64(u.load32(dataAt)), 1)
		is(t, "close", u.call(linux.SYS_CLOSE, uint64(u.load32(dataAt+12))), 0)
		is(t, "end of the pipe", u.call(linux.SYS_READ, uint64(u.load32(dataAt+8)), dataAt+100, 10), 0)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		exit(u, 0)
	}, func(u *user) {
		is(t, "inherited", int64(u.load32(dataAt)), 1)
		u.store32(dataAt, 2)
		is(t, "write", u.call(linux.SYS_WRITE, uint64(u.load32(dataAt+12)), dataAt, 4), 4)
		exit(u, 0)
	})
}

// A vfork child shares memory; the parent continues when the child has executed another program.
func TestVforkAndExec(t *testing.T) {
	run(t, func(u *user) {
		u.frame.R15 = 1
		child := u.call(linux.SYS_VFORK)
		is(t, "written by the child", int64(u.load32(dataAt)), 5)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt, 0, 0), child)
		is(t, "status", int64(u.load32(dataAt)), 9<<8)
		exit(u, 0)
	}, func(u *user) {
		u.store32(dataAt, 5)
		is(t, "no such program", u.call(linux.SYS_EXECVE, u.text(dataAt+64, "/nothing"), 0, 0), failed(linux.ENOENT))
		u.call(linux.SYS_EXECVE, u.text(dataAt+64, "/2"), 0, 0)
		t.Error("execve has returned")
	}, func(u *user) {
		is(t, "memory is new", int64(u.load32(dataAt)), 0)
		exit(u, 9)
	})
}

// install sets the handler of a signal to the program with a number.
func install(u *user, n signal.Number, program, flags uint64) {
	b := make([]byte, linux.SizeofKernelSigaction)
	linux.KernelSigaction{Handler: handlersAt + program, Flags: flags | linux.SA_RESTORER, Restorer: restorerAt}.Put(b)
	u.store(dataAt+0x800, b)
	u.call(linux.SYS_RT_SIGACTION, uint64(n), dataAt+0x800, 0, setSize)
}

// highBits are bits of RAX that are not part of the number of a system call.
const highBits = 5 << 32

// A handler runs on the thread's stack with the signal's number, and all registers come back. A call is made again with
// SA_RESTART, and fails with EINTR without.
func TestHandlers(t *testing.T) {
	handled := 0
	run(t, func(u *user) {
		install(u, linux.SIGALRM, 1, signal.Restart)
		is(t, "pipe", u.call(linux.SYS_PIPE2, dataAt, 0), 0)
		u.frame.BX, u.frame.R12, u.vectors[300] = 11, 12, 13
		sp := u.frame.SP
		u.call(linux.SYS_ALARM, 1)
		child := u.fork(2)
		is(t, "restarted", u.call(highBits|linux.SYS_READ, uint64(u.load32(dataAt)), dataAt+100, 10), 1)
		if u.frame.BX != 11 || u.frame.R12 != 12 || u.vectors[300] != 13 || u.frame.SP != sp {
			t.Errorf("registers: %+v", u.frame)
		}
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		install(u, linux.SIGALRM, 1, 0)
		u.call(linux.SYS_ALARM, 1)
		is(t, "interrupted", u.call(linux.SYS_READ, uint64(u.load32(dataAt)), dataAt+100, 10), failed(linux.EINTR))
		u.call(linux.SYS_ALARM, 1)
		is(t, "pause", u.call(linux.SYS_PAUSE), failed(linux.EINTR))
		exit(u, 0)
	}, func(u *user) {
		handled++
		is(t, "signal", int64(u.frame.DI), linux.SIGALRM)
		u.frame.BX, u.frame.R12, u.vectors[300] = 0, 0, 0
		is(t, "a call in the handler", u.call(linux.SYS_GETPID), 2)
	}, func(u *user) {
		second(u, dataAt+64)
		u.call(linux.SYS_NANOSLEEP, dataAt+64, 0)
		u.call(linux.SYS_NANOSLEEP, dataAt+64, 0)
		u.call(linux.SYS_WRITE, uint64(u.load32(dataAt+4)), dataAt, 1)
		exit(u, 0)
	})
	is(t, "handled", int64(handled), 3)
}

// An access to an invalid address raises SIGSEGV: it can be handled, and otherwise ends the process. System calls
// return EFAULT.
func TestBadAddress(t *testing.T) {
	handled := false
	status := run(t, func(u *user) {
		is(t, "write", u.call(linux.SYS_WRITE, 1, 0x1000, 10), failed(linux.EBADF))
		is(t, "pipe", u.call(linux.SYS_PIPE2, 0x1000, 0), failed(linux.EFAULT))
		for _, at := range []uint64{0, 1 << 47, 1 << 63, 1<<64 - 8} {
			is(t, "uname", u.call(linux.SYS_UNAME, at), failed(linux.EFAULT))
		}
		install(u, linux.SIGSEGV, 1, signal.ResetHandler)
		if u.store(0x1000, []byte{1}) || !handled {
			t.Error("the handler did not run")
		}
		u.store(0x1000, []byte{1})
		t.Error("the process is alive")
	}, func(u *user) { handled = true })
	is(t, "status", int64(status), linux.SIGSEGV)
}

// Threads share memory and wait for futexes. The end of a thread wakes the waiter for its ID word.
func TestThreadsAndFutexes(t *testing.T) {
	const flags = linux.CLONE_VM | linux.CLONE_FS | linux.CLONE_FILES | linux.CLONE_SIGHAND | linux.CLONE_THREAD |
		linux.CLONE_CHILD_CLEARTID | linux.CLONE_PARENT_SETTID
	const word, id = dataAt, dataAt + 4
	run(t, func(u *user) {
		is(t, "another value", u.call(linux.SYS_FUTEX, word, linux.FUTEX_WAIT, 1, 0), failed(linux.EAGAIN))
		is(t, "timeout", u.call(linux.SYS_FUTEX, word, linux.FUTEX_WAIT, 0, second(u, dataAt+64)), failed(linux.ETIMEDOUT))
		u.frame.R15 = 1
		child := u.call(linux.SYS_CLONE, flags, 0, id, id)
		is(t, "the child's ID", int64(u.load32(id)), child)
		is(t, "woken", u.call(linux.SYS_FUTEX, word, linux.FUTEX_WAIT|linux.FUTEX_PRIVATE_FLAG, 0, 0), 0)
		is(t, "changed", int64(u.load32(word)), 1)
		if v := u.load32(id); v != 0 {
			u.call(linux.SYS_FUTEX, id, linux.FUTEX_WAIT, uint64(v), 0)
		}
		is(t, "cleared", int64(u.load32(id)), 0)
		is(t, "no process", u.call(linux.SYS_WAIT4, 1<<64-1, 0, 0, 0), failed(linux.ECHILD))
		u.frame.R15 = 2
		u.call(linux.SYS_CLONE, flags&^(linux.CLONE_CHILD_CLEARTID|linux.CLONE_PARENT_SETTID), 0, 0, 0)
		u.call(linux.SYS_PAUSE)
		t.Error("the process is alive")
	}, func(u *user) {
		is(t, "the process", u.call(linux.SYS_GETPID), 2)
		second(u, dataAt+128)
		u.call(linux.SYS_NANOSLEEP, dataAt+128, 0)
		u.store32(word, 1)
		is(t, "wake", u.call(linux.SYS_FUTEX, word, linux.FUTEX_WAKE|linux.FUTEX_PRIVATE_FLAG, 1, 0), 1)
		u.call(linux.SYS_NANOSLEEP, dataAt+128, 0)
		u.call(linux.SYS_EXIT, 0)
	}, func(u *user) { exit(u, 4) })
}

// SIGSTOP stops a process, SIGCONT lets it continue, and wait4 reports both to the parent.
func TestStopAndContinue(t *testing.T) {
	run(t, func(u *user) {
		child := u.fork(1)
		const options = linux.WUNTRACED | linux.WCONTINUED
		u.call(linux.SYS_KILL, uint64(child), linux.SIGSTOP)
		is(t, "stopped", u.call(linux.SYS_WAIT4, uint64(child), dataAt, options, 0), child)
		is(t, "status", int64(u.load32(dataAt)), linux.SIGSTOP<<8|0x7f)
		u.call(linux.SYS_KILL, uint64(child), linux.SIGCONT)
		is(t, "continued", u.call(linux.SYS_WAIT4, uint64(child), dataAt, options, 0), child)
		is(t, "status", int64(u.load32(dataAt)), 0xffff)
		u.call(linux.SYS_KILL, uint64(child), linux.SIGSTOP)
		is(t, "stopped", u.call(linux.SYS_WAIT4, uint64(child), dataAt, options, 0), child)
		u.call(linux.SYS_KILL, uint64(child), linux.SIGKILL)
		is(t, "killed", u.call(linux.SYS_WAIT4, uint64(child), dataAt, options, 0), child)
		is(t, "status", int64(u.load32(dataAt)), linux.SIGKILL)
		exit(u, 0)
	}, func(u *user) {
		for {
			u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0)
		}
	})
}

// A write to a pipe without readers raises SIGPIPE, and fails with EPIPE if the signal is ignored.
func TestPipeSignal(t *testing.T) {
	const pipe, other, action, vector = dataAt, dataAt + 8, dataAt + 64, dataAt + 128
	for name, write := range map[string]func(u *user, end uint64) int64{
		"write":    func(u *user, end uint64) int64 { return u.call(linux.SYS_WRITE, end, dataAt, 1) },
		"pwritev2": func(u *user, end uint64) int64 { return u.call(linux.SYS_PWRITEV2, end, vector, 1, 1<<64-1, 0, 0) },
		"vmsplice": func(u *user, end uint64) int64 { return u.call(linux.SYS_VMSPLICE, end, vector, 1, 0) },
		"tee":      func(u *user, end uint64) int64 { return u.call(linux.SYS_TEE, uint64(u.load32(other)), end, 1, 0) },
	} {
		status := run(t, func(u *user) {
			u.call(linux.SYS_PIPE2, pipe, 0)
			u.call(linux.SYS_CLOSE, uint64(u.load32(pipe)))
			u.call(linux.SYS_PIPE2, other, 0)
			u.call(linux.SYS_WRITE, uint64(u.load32(other+4)), dataAt, 1)
			u.store(vector, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, dataAt), 1))
			end := uint64(u.load32(pipe + 4))
			b := make([]byte, linux.SizeofKernelSigaction)
			linux.KernelSigaction{Handler: signal.Ignore}.Put(b)
			u.store(action, b)
			u.call(linux.SYS_RT_SIGACTION, linux.SIGPIPE, action, 0, setSize)
			is(t, name+", ignored", write(u, end), failed(linux.EPIPE))
			u.store(action, make([]byte, linux.SizeofKernelSigaction))
			u.call(linux.SYS_RT_SIGACTION, linux.SIGPIPE, action, 0, setSize)
			write(u, end)
			exit(u, 0) // not reached: the signal ends the process
		})
		is(t, name+": status", int64(status), linux.SIGPIPE)
	}
}

// execve ends all other threads.
func TestExecEndsThreads(t *testing.T) {
	const flags = linux.CLONE_VM | linux.CLONE_SIGHAND | linux.CLONE_THREAD
	status := run(t, func(u *user) {
		u.frame.R15 = 1
		u.call(linux.SYS_CLONE, flags, 0, 0, 0)
		u.frame.R15 = 2
		u.call(linux.SYS_CLONE, flags, 0, 0, 0)
		u.call(linux.SYS_PAUSE)
	}, func(u *user) {
		u.call(linux.SYS_PAUSE)
	}, func(u *user) {
		u.call(linux.SYS_EXECVE, u.text(dataAt+64, "/3"), 0, 0)
	}, func(u *user) {
		is(t, "the process", u.call(linux.SYS_GETPID), 2)
		is(t, "the thread", u.call(linux.SYS_GETTID), 2)
		exit(u, 6)
	})
	is(t, "status", int64(status), 6<<8)
}

// execve also ends a thread that waits for a vfork child.
func TestExecEndsVfork(t *testing.T) {
	status := run(t, func(u *user) {
		u.frame.R15 = 1
		u.call(linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_SIGHAND|linux.CLONE_THREAD, 0, 0, 0)
		u.frame.R15 = 2
		u.call(linux.SYS_VFORK)
		t.Error("the thread continues")
	}, func(u *user) {
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0)
		u.call(linux.SYS_EXECVE, u.text(dataAt+128, "/3"), 0, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) }, func(u *user) { exit(u, 6) })
	is(t, "status", int64(status), 6<<8)
}

// If two threads call execve at once, one of them executes its program, and the other ends.
func TestTwoThreadsExec(t *testing.T) {
	status := run(t, func(u *user) {
		var loading atomic.Int32
		both := make(chan struct{}) // closed when both threads load their program
		u.space.machine.forking = func() {
			if loading.Add(1) == 2 {
				close(both)
			}
			<-both
		}
		u.frame.R15 = 1
		u.call(linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_SIGHAND|linux.CLONE_THREAD, 0, 0, 0)
		u.call(linux.SYS_EXECVE, u.text(dataAt+64, "/2"), 0, 0)
	}, func(u *user) {
		u.call(linux.SYS_EXECVE, u.text(dataAt+128, "/2"), 0, 0)
	}, func(u *user) { exit(u, 6) })
	is(t, "status", int64(status), 6<<8)
}

// A thread that is about to end, because another thread has called execve, cannot create a thread: nothing would end
// the new one.
func TestExecDuringClone(t *testing.T) {
	const flags = linux.CLONE_VM | linux.CLONE_SIGHAND | linux.CLONE_THREAD
	status := run(t, func(u *user) {
		inClone := make(chan struct{})
		u.space.machine.programs[1] = func(u *user) {
			<-inClone
			u.call(linux.SYS_EXECVE, u.text(dataAt+64, "/3"), 0, 0)
		}
		u.frame.R15 = 1
		u.call(linux.SYS_CLONE, flags, 0, 0, 0)
		var calls atomic.Int32
		u.space.machine.cloning = func() {
			if calls.Add(1) == 1 {
				close(inClone)
				time.Sleep(time.Second) // meanwhile, execve ends this thread
			}
		}
		u.frame.R15 = 2
		u.call(linux.SYS_CLONE, flags, 0, 0, 0)
		t.Error("the thread is alive")
	}, nil, func(u *user) { u.call(linux.SYS_PAUSE) },
		func(u *user) { exit(u, 6) })
	is(t, "status", int64(status), 6<<8)
}

// A file that is mapped shares its pages; changes of a shared mapping reach the file; a file that has been removed is
// released with the process that mapped it.
func TestMappedFile(t *testing.T) {
	run(t, func(u *user) {
		fd := uint64(u.call(linux.SYS_OPEN, u.text(dataAt, "/file"), linux.O_CREAT|linux.O_RDWR, 0o644))
		is(t, "write", u.call(linux.SYS_WRITE, fd, u.text(dataAt+64, "before"), 6), 6)
		shared := uint64(u.call(linux.SYS_MMAP, 0, 4096, linux.PROT_READ|linux.PROT_WRITE, linux.MAP_SHARED, fd, 0))
		private := uint64(u.call(linux.SYS_MMAP, 0, 4096, linux.PROT_READ|linux.PROT_WRITE, linux.MAP_PRIVATE, fd, 0))
		is(t, "mapped", int64(u.load32(shared)), int64(u.load32(private)))
		u.store32(private, 1)
		u.store32(shared, 2)
		is(t, "the copy", int64(u.load32(private)), 1)
		is(t, "msync", u.call(linux.SYS_MSYNC, shared, 4096, linux.MS_SYNC), 0)
		is(t, "pread", u.call(linux.SYS_PREAD64, fd, dataAt+64, 4, 0), 4)
		is(t, "written back", int64(u.load32(dataAt+64)), 2)
		u.call(linux.SYS_UNLINK, dataAt)
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		exit(u, 0)
	}, func(u *user) { exit(u, 0) })
}

// sigtimedwait takes a pending signal that is blocked, waits for one, and returns when its timeout is over.
func TestTimedWait(t *testing.T) {
	const set, info, timeout = dataAt, dataAt + 64, dataAt + 256
	status := run(t, func(u *user) {
		u.store(set, binary.LittleEndian.AppendUint64(nil, uint64(signal.SetOf(linux.SIGALRM))))
		u.call(linux.SYS_RT_SIGPROCMASK, linux.SIG_BLOCK, set, 0, setSize)
		second(u, timeout)
		is(t, "no signal", u.call(linux.SYS_RT_SIGTIMEDWAIT, set, info, timeout, setSize), failed(linux.EAGAIN))
		u.call(linux.SYS_ALARM, 1)
		is(t, "waited for", u.call(linux.SYS_RT_SIGTIMEDWAIT, set, info, 0, setSize), linux.SIGALRM)
		is(t, "its info", int64(u.load32(info)), linux.SIGALRM)
		u.call(linux.SYS_KILL, uint64(u.call(linux.SYS_GETPID)), linux.SIGALRM)
		is(t, "pending", u.call(linux.SYS_RT_SIGTIMEDWAIT, set, info, timeout, setSize), linux.SIGALRM)
		exit(u, 0)
	})
	is(t, "the signal ended the process: status", int64(status), 0)
}

// tgkill fails with EAGAIN if there is no room for a real-time signal, which must be queued. Other signals need no room.
func TestThreadSignalWithoutRoom(t *testing.T) {
	const set, realTime = dataAt, 40
	run(t, func(u *user) {
		u.store(set, binary.LittleEndian.AppendUint64(nil, uint64(signal.SetOf(realTime)|signal.SetOf(linux.SIGUSR1))))
		u.call(linux.SYS_RT_SIGPROCMASK, linux.SIG_BLOCK, set, 0, setSize)
		u.limitTo(t, linux.RLIMIT_SIGPENDING, 0, 0)
		self := uint64(u.call(linux.SYS_GETPID))
		is(t, "real-time signal", u.call(linux.SYS_TGKILL, self, self, realTime), failed(linux.EAGAIN))
		is(t, "by tkill", u.call(linux.SYS_TKILL, self, realTime), failed(linux.EAGAIN))
		is(t, "SIGUSR1", u.call(linux.SYS_TGKILL, self, self, linux.SIGUSR1), 0)
		is(t, "no signal", u.call(linux.SYS_TGKILL, self, self, 0), 0)
		u.call(linux.SYS_RT_SIGPENDING, set, setSize)
		is(t, "pending", int64(u.load32(set)), int64(signal.SetOf(linux.SIGUSR1)))
		exit(u, 0)
	})
}

// Unknown system calls fail with ENOSYS. Files that are no programs are rejected with the errors that execve(2)
// lists.
func TestRefusals(t *testing.T) {
	run(t, func(u *user) {
		is(t, "no such call", u.call(100000), failed(linux.ENOSYS))
		is(t, "a folder", u.call(linux.SYS_EXECVE, u.text(dataAt, "/dir"), 0, 0), failed(linux.ENOENT))
		is(t, "mkdir", u.call(linux.SYS_MKDIR, u.text(dataAt, "/dir"), 0o755), 0)
		is(t, "a folder", u.call(linux.SYS_EXECVE, u.text(dataAt, "/dir"), 0, 0), failed(linux.EACCES))
		fd := uint64(u.call(linux.SYS_OPEN, u.text(dataAt, "/text"), linux.O_CREAT|linux.O_RDWR, 0o755))
		is(t, "write", u.call(linux.SYS_WRITE, fd, u.text(dataAt, "no program"), 10), 10)
		is(t, "text", u.call(linux.SYS_EXECVE, u.text(dataAt, "/text"), 0, 0), failed(linux.ENOEXEC))
		is(t, "kill", u.call(linux.SYS_KILL, 999, 0), failed(linux.ESRCH))
		is(t, "kill", u.call(linux.SYS_KILL, 2, 65), failed(linux.EINVAL))
		is(t, "namespace", u.call(linux.SYS_CLONE, linux.CLONE_NEWUSER, 0, 0, 0), failed(linux.EPERM))
		exit(u, 0)
	})
}
