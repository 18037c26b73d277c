package seal

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/posix/call"
)

// testPlaces returns made-up places (the addresses of system call instructions) for all functions that the table of
// calls mentions. Each function has one instruction. The addresses ascend in the order of first mention.
func testPlaces() []Place {
	places := []Place{{"program", 0x49_0000}}
	at := uint64(0x45_0000)
	for _, c := range Calls {
		for _, name := range c.From {
			if !slices.ContainsFunc(places, func(p Place) bool { return p.Name == name }) {
				places = append(places, Place{name, at})
				at += 0x40
			}
		}
	}
	return places
}

func placeOf(name string) uint64 {
	places := testPlaces()
	return places[slices.IndexFunc(places, func(p Place) bool { return p.Name == name })].After
}

// testProcess and testPID describe the process that a filter is for. Their numbers occur nowhere else in the tests.
var testProcess = Process{Socket: 9, First: 12, Disk: 6, DiskSizes: []int64{1 << 20, 5<<32 | 4096}, Memory: 10, Memories: 2}

const testPID = 4711

// request is struct seccomp_data.
type request struct {
	number, arch uint32
	place        uint64
	args         [6]uint64
}

func (r request) word(offset uint32) uint32 {
	words := []uint32{r.number, r.arch, uint32(r.place), uint32(r.place >> 32)}
	for _, a := range r.args {
		words = append(words, uint32(a), uint32(a>>32))
	}
	return words[offset/4]
}

// run interprets a filter as the kernel does, and returns its result.
func run(t *testing.T, filter []Instruction, r request) uint32 {
	t.Helper()
	accumulator, kept := uint32(0), uint32(0)
	for at := 0; at < len(filter); at++ {
		i := filter[at]
		holds := false
		switch i.Code {
		case opLoad:
			accumulator = r.word(i.K)
			continue
		case opAnd:
			accumulator &= i.K
			continue
		case opKeep:
			kept = accumulator
			continue
		case opAddX:
			accumulator += kept
			continue
		case opReturn:
			return i.K
		case opAtLeastX:
			holds = accumulator >= kept
		case opEqual:
			holds = accumulator == i.K
		case opAtLeast:
			holds = accumulator >= i.K
		default:
			t.Fatalf("instruction %d: code %#x", at, i.Code)
		}
		if holds {
			at += int(i.Jt)
		} else {
			at += int(i.Jf)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func testFilter(t *testing.T) []Instruction {
	t.Helper()
	return filterFor(t, testProcess)
}

// filterFor generates a filter and sets its process ID.
func filterFor(t *testing.T, p Process) []Instruction {
	t.Helper()
	filter, err := Filter(Calls, testPlaces(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range filter.PID {
		filter.Code[i].K = testPID
	}
	return filter.Code
}

// fitting returns arguments that pass the argument tests of a row of the table.
func fitting(c Call) (args [6]uint64) {
	for _, test := range c.If {
		switch test.Kind {
		case Self:
			args[test.Arg] = uint64(testPID) | 1<<32 // the kernel uses only the lower half
		case Equal, Set, AtLeast:
			args[test.Arg] = uint64(test.Values[0])
		case Socket:
			args[test.Arg] = uint64(testProcess.Socket)
		case Handed:
			args[test.Arg] = uint64(testProcess.First)
		case Disk:
			args[test.Arg] = uint64(testProcess.Disk)
		case Memory:
			args[test.Arg] = uint64(testProcess.Memory)
		}
	}
	return args
}

// Every row of the table allows its call from each of its places and from no other place. The same numbers are rejected
// for other architectures.
func TestTable(t *testing.T) {
	filter := testFilter(t)
	for _, c := range Calls {
		for _, p := range testPlaces() {
			want := uint32(retTrap)
			if c.Do == Invalid { // a row with Invalid only matches calls that no row above it matches
				continue
			}
			if c.From == nil || slices.Contains(c.From, p.Name) {
				want = c.Do.result()
			}
			good := request{c.Number, archAMD64, p.After, fitting(c)}
			if got := run(t, filter, good); got != want {
				t.Errorf("%s from %s: %#x, want %#x", c.Name, p.Name, got, want)
			}
			other, x32, before, far := good, good, good, good
			other.arch, x32.number = 0x40000003, good.number|1<<30
			before.place, far.place = good.place-1, good.place|1<<40
			if run(t, filter, other) != retTrap || run(t, filter, x32) != retTrap {
				t.Errorf("%s from %s passes as a call of 32 bits", c.Name, p.Name)
			}
			if c.From != nil && (run(t, filter, before) != retTrap || run(t, filter, far) != retTrap) {
				t.Errorf("%s passes from beside %s", c.Name, p.Name)
			}
		}
	}
}

// Filter returns an error if the executable has no place for a function of the table. It does not silently omit the
// row.
func TestUnknownPlace(t *testing.T) {
	if _, err := Filter(Calls, testPlaces()[:2], testProcess); err == nil {
		t.Error("a filter without most of its places")
	}
}

// The filter agrees with the table of calls of package call: each call that a program may make of the host passes the
// filter from package syscall, and no call passes that neither Loam nor the host serves.
func TestCallsOfTheHost(t *testing.T) {
	for _, r := range call.Table {
		passes := slices.ContainsFunc(Calls, func(c Call) bool {
			return c.Number == uint32(r.Number) && (c.From == nil || slices.Contains(c.From, Gate))
		})
		if r.Who&call.Host != 0 && !passes {
			t.Errorf("%s is the host's, and sealed", r.Name)
		}
	}
	for _, c := range Calls {
		if c.Do != Allow { // the host does not serve this call
			continue
		}
		r := call.ByNumber(int(c.Number))
		if r == nil || r.Name != c.Name || r.Who&(call.Host|call.Runtime) == 0 {
			t.Errorf("%s passes, and the table of calls leaves it to nobody", c.Name)
		}
	}
}

// Calls with arguments that the filter must reject, made from places where the call itself is allowed.
//
// long: the function consists of a table.
func TestArguments(t *testing.T) {
	filter := testFilter(t)
	const anonymous = linux.MAP_ANONYMOUS | linux.MAP_PRIVATE
	for _, c := range []struct {
		what   string
		number uint32
		from   string
		args   [6]uint64
		want   uint32
	}{
		{"memory", linux.SYS_MMAP, "runtime.sysMmap", [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_WRITE, anonymous, ^uint64(0)}, retAllow},
		{"a file", linux.SYS_MMAP, "runtime.sysMmap", [6]uint64{0, 4096, linux.PROT_READ, linux.MAP_PRIVATE, 3}, retTrap},
		{"a thread", linux.SYS_CLONE, "runtime.clone", [6]uint64{cloneThread}, retAllow},
		{"a thread with its storage", linux.SYS_CLONE, "runtime.clone", [6]uint64{cloneThread | linux.CLONE_SETTLS}, retAllow},
		{"a process", linux.SYS_CLONE, "runtime.clone", [6]uint64{uint64(linux.SIGCHLD)}, retTrap},
		{"vfork", linux.SYS_CLONE, "runtime.clone", [6]uint64{linux.CLONE_VM | linux.CLONE_VFORK}, retTrap},
		{"a thread in a new namespace", linux.SYS_CLONE, "runtime.clone", [6]uint64{cloneThread | linux.CLONE_NEWUSER}, retTrap},
		{"a signal to itself", linux.SYS_KILL, "runtime.raiseproc", [6]uint64{uint64(testPID), 15}, retAllow},
		{"a signal to the parent", linux.SYS_KILL, "runtime.raiseproc", [6]uint64{1, 9}, retTrap},
		{"a signal to its group", linux.SYS_KILL, "runtime.raiseproc", [6]uint64{0, 9}, retTrap},
		{"a signal to another's thread", linux.SYS_TGKILL, "runtime.tgkill", [6]uint64{1, 1, 9}, retTrap},
		{"the name of memory", linux.SYS_PRCTL, Gate, [6]uint64{linux.PR_SET_VMA}, retAllow},
		{"the limits of another", linux.SYS_PRLIMIT64, "program", [6]uint64{1}, retTrap},
		{"a clock", linux.SYS_CLOCK_GETTIME, "program", [6]uint64{11}, retAllow},
		{"its own CPU clock", linux.SYS_CLOCK_GETTIME, "program", [6]uint64{clockOf(0, 2)}, retAllow},
		{"the CPU clock of its thread", linux.SYS_CLOCK_NANOSLEEP, "program", [6]uint64{clockOf(0, 6)}, retAllow},
		{"the CPU clock of another", linux.SYS_CLOCK_GETTIME, "program", [6]uint64{clockOf(1, 2)}, Invalid.result()},
		{"the resolution of another's CPU clock", linux.SYS_CLOCK_GETRES, "program", [6]uint64{clockOf(300, 2)}, Invalid.result()},
		{"a sleep by another's CPU clock", linux.SYS_CLOCK_NANOSLEEP, "program", [6]uint64{clockOf(1, 6)}, Invalid.result()},
		{"a timer by another's CPU clock", linux.SYS_TIMER_CREATE, "runtime.timer_create", [6]uint64{clockOf(1, 2)}, retTrap},
		{"the clock of a device", linux.SYS_CLOCK_GETTIME, "program", [6]uint64{clockOf(3, 3)}, Invalid.result()},
		{"a file to read", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ, linux.MAP_PRIVATE, 3}, retAllow},
		{"a file to run", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_EXEC, linux.MAP_PRIVATE, 3}, retTrap},
		{"a file to share", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ, linux.MAP_SHARED, 3}, retTrap},
		{"memory of a folder's server", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_WRITE, linux.MAP_SHARED, 10}, retAllow},
		{"memory of another folder's server", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_WRITE, linux.MAP_SHARED, 11}, retAllow},
		{"memory of a folder's server to run", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_EXEC, linux.MAP_SHARED, 10}, retTrap},
		{"memory of a folder's server for another function", linux.SYS_MMAP, "runtime.sysMmap", [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_WRITE, linux.MAP_SHARED, 10}, retTrap},
		{"a disk image to share", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_WRITE, linux.MAP_SHARED, 6}, retTrap},
		{"a file before the memory to share", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_WRITE, linux.MAP_SHARED, 9}, retTrap},
		{"a file behind the memory to share", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_WRITE, linux.MAP_SHARED, 12}, retTrap},
		{"standard input from its beginning, as memory", linux.SYS_MMAP, Gate, [6]uint64{0, 4096, linux.PROT_READ, linux.MAP_PRIVATE, 0}, retTrap},
		{"a file of the host", linux.SYS_OPENAT, Gate, [6]uint64{}, Absent.result()},
		{"its own limits", linux.SYS_PRLIMIT64, "program", [6]uint64{0}, retAllow},
		{"the size of core dumps", linux.SYS_PRLIMIT64, "program", [6]uint64{0, linux.RLIMIT_CORE}, retTrap},
		{"the size of core dumps, as it was", linux.SYS_SETRLIMIT, "program", [6]uint64{linux.RLIMIT_CORE}, retTrap},
		{"the size of files", linux.SYS_SETRLIMIT, "program", [6]uint64{linux.RLIMIT_FSIZE}, retAllow},
		{"memory that is needed no more", linux.SYS_MADVISE, "program", [6]uint64{0, 4096, linux.MADV_DONTNEED}, retAllow},
		{"memory of the machine that is broken", linux.SYS_MADVISE, "program", [6]uint64{0, 4096, 100}, retTrap},
		{"memory of the machine that may be", linux.SYS_MADVISE, "program", [6]uint64{0, 4096, 101}, retTrap},
		{"advice below zero", linux.SYS_MADVISE, "program", [6]uint64{0, 4096, 1<<64 - 1}, retTrap},
		{"the processors of another", linux.SYS_SCHED_SETAFFINITY, "program", [6]uint64{1}, retTrap},
		{"a key for the terminal", linux.SYS_IOCTL, Gate, [6]uint64{0, linux.TIOCSTI}, retTrap},
		{"the size of a terminal", linux.SYS_IOCTL, Gate, [6]uint64{0, linux.TIOCGWINSZ}, retAllow},
		{"the size of a terminal that is no standard stream", linux.SYS_IOCTL, Gate, [6]uint64{3, linux.TIOCGWINSZ}, retTrap},
		{"the foreground of the terminal", linux.SYS_IOCTL, Gate, [6]uint64{0, linux.TIOCSPGRP}, retTrap},
		{"a frame to standard input", linux.SYS_SENDMSG, Gate, [6]uint64{0, 0, linux.MSG_DONTWAIT}, retTrap},
		{"a frame of standard input", linux.SYS_READV, Gate, [6]uint64{0}, retTrap},
		{"a frame of a link", linux.SYS_READV, Gate, [6]uint64{3}, retAllow},
		{"standard input from its beginning", linux.SYS_PREAD64, Gate, [6]uint64{0, 0, 1, 0}, retTrap},
		{"/proc/self/maps", linux.SYS_PREAD64, Gate, [6]uint64{3, 0, 1, 0}, retAllow},
		{"a block of a disk image", linux.SYS_PWRITE64, Gate, [6]uint64{6, 0, 512, 0}, retAllow},
		{"a block of another disk image", linux.SYS_PWRITE64, Gate, [6]uint64{7, 0, 512, 0}, retAllow},
		{"the last block of a disk image", linux.SYS_PWRITE64, Gate, [6]uint64{6, 0, 512, 1<<20 - 512}, retAllow},
		{"a block beyond a disk image", linux.SYS_PWRITE64, Gate, [6]uint64{6, 0, 512, 1 << 20}, retTrap},
		{"a block that is half beyond a disk image", linux.SYS_PWRITE64, Gate, [6]uint64{6, 0, 512, 1<<20 - 256}, retTrap},
		{"a block far beyond a disk image", linux.SYS_PWRITE64, Gate, [6]uint64{6, 0, 512, 1 << 32}, retTrap},
		{"a position below zero", linux.SYS_PWRITE64, Gate, [6]uint64{6, 0, 512, 1<<64 - 256}, retTrap},
		{"a count of 64 bits", linux.SYS_PWRITE64, Gate, [6]uint64{6, 0, 1 << 32, 0}, retTrap},
		{"the end of a large disk image", linux.SYS_PWRITE64, Gate, [6]uint64{7, 0, 4096, 5 << 32}, retAllow},
		{"beyond the end of a large disk image", linux.SYS_PWRITE64, Gate, [6]uint64{7, 0, 4097, 5 << 32}, retTrap},
		{"a carry in a large disk image", linux.SYS_PWRITE64, Gate, [6]uint64{7, 0, 4096, 5<<32 - 1}, retAllow},
		{"a carry beyond a large disk image", linux.SYS_PWRITE64, Gate, [6]uint64{7, 0, 8192, 5<<32 - 1}, retTrap},
		{"a carry too far", linux.SYS_PWRITE64, Gate, [6]uint64{7, 0, 4096, 6<<32 - 1}, retTrap},
		{"within the lower half, beyond the upper one", linux.SYS_PWRITE64, Gate, [6]uint64{7, 0, 512, 6 << 32}, retTrap},
		{"a write at the position of a disk image", linux.SYS_WRITE, Gate, [6]uint64{6, 0, 512}, retTrap},
		{"a write of the runtime to a disk image", linux.SYS_WRITE, "runtime.write1", [6]uint64{7, 0, 512}, retTrap},
		{"a write beside the disk images", linux.SYS_WRITE, Gate, [6]uint64{8, 0, 512}, retAllow},
		{"standard output", linux.SYS_WRITE, "runtime.write1", [6]uint64{1, 0, 512}, retAllow},
		{"a block of a file before the images", linux.SYS_PWRITE64, Gate, [6]uint64{5, 0, 512, 0}, retTrap},
		{"a block of a file behind the images", linux.SYS_PWRITE64, Gate, [6]uint64{8, 0, 512, 0}, retTrap},
		{"a disk image made durable", linux.SYS_FDATASYNC, Gate, [6]uint64{7}, retAllow},
		{"another file made durable", linux.SYS_FDATASYNC, Gate, [6]uint64{8}, retTrap},
		{"a connection", linux.SYS_RECVMSG, Gate, [6]uint64{9}, retAllow},
		{"a message of another socket", linux.SYS_RECVMSG, Gate, [6]uint64{8}, retTrap},
		{"a message of a connection", linux.SYS_RECVMSG, Gate, [6]uint64{12}, retTrap},
		{"the end of a connection", linux.SYS_SHUTDOWN, Gate, [6]uint64{100}, retAllow},
		{"the end of a link", linux.SYS_SHUTDOWN, Gate, [6]uint64{11}, retTrap},
		{"the end of a negative number", linux.SYS_SHUTDOWN, Gate, [6]uint64{1<<32 - 1}, retTrap},
		{"bytes with a flag", linux.SYS_SENDTO, Gate, [6]uint64{12, 0, 1, linux.MSG_NOSIGNAL}, retAllow},
		{"bytes from a link", linux.SYS_SENDTO, Gate, [6]uint64{11, 0, 1, linux.MSG_NOSIGNAL}, retTrap},
		{"bytes to somebody new", linux.SYS_SENDTO, Gate, [6]uint64{12, 0, 1, linux.MSG_FASTOPEN | linux.MSG_NOSIGNAL}, retTrap},
		{"a message to somebody new", linux.SYS_SENDMSG, Gate, [6]uint64{12, 0, linux.MSG_FASTOPEN}, retTrap},
		{"a frame", linux.SYS_SENDMSG, Gate, [6]uint64{4, 0, linux.MSG_DONTWAIT}, retAllow},
		{"no delay", linux.SYS_SETSOCKOPT, Gate, [6]uint64{12, linux.IPPROTO_TCP, linux.TCP_NODELAY}, retAllow},
		{"no delay of a link", linux.SYS_SETSOCKOPT, Gate, [6]uint64{4, linux.IPPROTO_TCP, linux.TCP_NODELAY}, retTrap},
		{"repair of a connection", linux.SYS_SETSOCKOPT, Gate, [6]uint64{12, linux.IPPROTO_TCP, 19}, retTrap},
		{"another protocol above TCP", linux.SYS_SETSOCKOPT, Gate, [6]uint64{12, linux.IPPROTO_TCP, 31}, retTrap},
		{"a filter of its own", linux.SYS_SETSOCKOPT, Gate, [6]uint64{12, linux.SOL_SOCKET, linux.SO_ATTACH_FILTER}, retTrap},
		{"TCP_INFO", linux.SYS_GETSOCKOPT, Gate, [6]uint64{12, linux.IPPROTO_TCP, linux.TCP_INFO}, retAllow},
		{"a descriptor of the peer's process", linux.SYS_GETSOCKOPT, Gate, [6]uint64{12, linux.SOL_SOCKET, 77}, retTrap},
		{"a copy of a connection", linux.SYS_FCNTL, Gate, [6]uint64{12, linux.F_DUPFD_CLOEXEC, 12}, retAllow},
		{"a copy of a link", linux.SYS_FCNTL, Gate, [6]uint64{4, linux.F_DUPFD_CLOEXEC, 12}, retTrap},
		{"another mode of a connection", linux.SYS_FCNTL, Gate, [6]uint64{12, linux.F_SETFL, 0}, retTrap},
		{"a signal at the parent's end", linux.SYS_PRCTL, Gate, [6]uint64{linux.PR_SET_PDEATHSIG}, retTrap},
	} {
		if got := run(t, filter, request{c.number, archAMD64, placeOf(c.from), c.args}); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.what, got, c.want)
		}
	}
}

// clockOf returns the number of a clock of a process or a descriptor (clock_getres(2)).
func clockOf(id uint64, kind uint64) uint64 { return uint64(uint32(^id<<3 | kind)) }

// Without a socket for handed-over connections, and without disks, the filter rejects all calls that concern them.
func TestNothingHanded(t *testing.T) {
	filter := filterFor(t, Process{Socket: -1, First: -1})
	for _, number := range []uint32{linux.SYS_PWRITE64, linux.SYS_FDATASYNC} {
		for fd := range uint64(20) {
			if got := run(t, filter, request{number, archAMD64, placeOf(Gate), [6]uint64{fd}}); got != retTrap {
				t.Errorf("call %d of descriptor %d without a disk: %#x", number, fd, got)
			}
		}
	}
	for _, c := range ofConnections {
		for _, fd := range []uint64{0, 9, 12, 1<<32 - 1} {
			r := request{c.Number, archAMD64, placeOf(Gate), fitting(c)}
			r.args[0] = fd
			if got := run(t, filter, r); got != retTrap {
				t.Errorf("%s of %d: %#x", c.Name, fd, got)
			}
		}
	}
}

// Without a shared folder, no file can be mapped for writing.
func TestNoMemory(t *testing.T) {
	filter := filterFor(t, Process{Socket: -1, First: -1})
	for fd := range uint64(20) {
		r := request{linux.SYS_MMAP, archAMD64, placeOf(Gate), [6]uint64{0, 4096, linux.PROT_READ | linux.PROT_WRITE, linux.MAP_SHARED, fd}}
		if got := run(t, filter, r); got != retTrap {
			t.Errorf("descriptor %d: %#x", fd, got)
		}
	}
}

// The table of allowed calls contains no call that opens, creates or changes a file of the host.
func TestShut(t *testing.T) {
	filter := testFilter(t)
	for name, number := range map[string]uint32{
		"open": 2, "creat": 85, "openat": 257, "openat2": 437, "socket": 41, "connect": 42, "accept4": 288, "execve": 59, "execveat": 322,
		"fork": 57, "vfork": 58, "clone3": 435, "ptrace": 101, "io_uring_setup": 425, "io_uring_enter": 426, "memfd_create": 319,
		"dup": 32, "dup3": 292, "fcntl": 72, "ioctl": 16, "pidfd_open": 434, "pidfd_getfd": 438,
		"process_vm_readv": 310, "writev": 20, "recvmsg": 47, "bpf": 321, "seccomp": 317, "unshare": 272, "setns": 308, "mount": 165, "unlink": 87,
		"rename": 82, "mknod": 133, "shmget": 29, "userfaultfd": 323, "perf_event_open": 298, "keyctl": 250, "splice": 275, "sendfile": 40,
	} {
		for _, p := range testPlaces() {
			got := run(t, filter, request{number: number, arch: archAMD64, place: p.After})
			if got != retTrap && got != retNotify && got != Absent.result() {
				t.Errorf("%s from %s: %#x", name, p.Name, got)
			}
		}
	}
}

// The assembler rejects a filter program that is too long, or that jumps over too many instructions.
func TestAssembler(t *testing.T) {
	var far assembler
	l := far.newLabel()
	far.branch(opEqual, 1, l, next)
	for range 256 {
		far.result(retTrap)
	}
	far.place(l)
	if _, err := far.assemble(); err != errJump {
		t.Errorf("a jump over 256 instructions: %v", err)
	}
	var long assembler
	for range maxLength + 1 {
		long.result(retTrap)
	}
	if _, err := long.assemble(); err != errLength {
		t.Errorf("%d instructions: %v", maxLength+1, err)
	}
}

var update = flag.Bool("update", false, "write docs/seal.md")

// TestDocument checks that docs/seal.md is up to date. To regenerate the file:
//
//	go test ./unikernel/seal -update
func TestDocument(t *testing.T) {
	const file = "../../docs/seal.md"
	want := document()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("docs/seal.md differs from the table (%v): go test ./unikernel/seal -update", err)
	}
}

func document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	b.WriteString("| call | allowed from | only if | result | purpose |\n|---|---|---|---|---|\n")
	for _, c := range Calls {
		var tests []string
		for _, test := range c.If {
			tests = append(tests, test.Text)
		}
		if c.Do == Invalid {
			tests = append(tests, "any other arguments")
		}
		from := strings.ReplaceAll(strings.Join(c.From, ", "), Gate, "Syscall6")
		if c.From == nil {
			from = "anywhere"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.Name, from, strings.Join(tests, "; "), outcomes[c.Do], c.Why)
	}
	b.WriteString(documentEnd)
	return b.String()
}

var outcomes = map[Action]string{Allow: "", Absent: "ENOENT", Invalid: "EINVAL", Notify: "once"}

const documentHead = `# The seal: what confines a program that runs as a process

The table below is made from ` + "`unikernel/seal/table.go`" + ` by ` + "`go test ./unikernel/seal -update`" + `.

A program that runs as a process is confined before its first instruction: ` + "`unikernel/sandbox`" + `
confines the process, and then starts the program. The confinement, called the *seal*, does not depend on the content of
the program's file. It has several layers; ` + "`loam doctor`" + ` reports which of them this machine supports. In this document, a
*link* is a file descriptor over which Loam's network stack sends and receives frames. A *` + "`:rw`" + ` folder* is a folder of the
host that the program may write; a *server* in the ` + "`loam`" + ` command performs the program's requests on this folder.

| layer | effect on the program | requirements |
|---|---|---|
| descriptors | the program has no descriptors except the standard streams, the links, archives of ` + "`-v`" + `, its own file, and for each ` + "`:rw`" + ` folder a socket and memory that it shares with the server | none |
| user | if root starts the program, it runs as user and group 65534 without capabilities, unless ` + "`--keep-root`" + ` is given | none |
| user namespace | the program has no capabilities outside its user namespace | user namespaces: Linux 3.8, and permission (user.max_user_namespaces, AppArmor) |
| mount namespace | the program sees no files: its root is an empty read-only folder | a user namespace, or root |
| PID namespace | the program sees no other processes; it ends if its parent process ends | a user namespace, or root |
| network namespace | the program sees neither the host's network interfaces nor its abstract Unix sockets | a user namespace, or root |
| IPC namespace | the program cannot use the host's System V and POSIX queues and shared memory | a user namespace, or root |
| Landlock | the program cannot open files; it cannot use the host's TCP (Linux 6.7), nor send signals to other processes or use abstract sockets (Linux 6.12) | Linux 5.13 with Landlock |
| no_new_privs, core dumps | the program gets no rights from set-user-ID files, and writes no core files | none |
| filter (seccomp) | the program can make only the system calls in the table of calls below | Linux 5.5: on older releases no program starts as a process |

Only the filter exists on every supported release of Linux. On Linux 5.5 to 5.12, or if an administrator has disabled user
namespaces, the filter is the only layer that prevents the program from opening files. On Linux 5.5 to 5.13, /proc/self/maps
of the program is empty, because the descriptor of this file cannot be passed to the program.

A virtual machine (` + "`--platform vm`" + `) is confined by QEMU. QEMU's own seccomp filter prevents QEMU from starting programs. QEMU
gets its files as open descriptors, and runs as user 65534 if root starts it.

## The filter

The filter decides on each system call that the process makes to the host. A call that affects only the process itself may
come from any instruction. A call that involves a descriptor or a signal must come from the SYSCALL instruction in one of
the Go runtime's own functions.

All other calls raise a signal (SIGSYS), which the edited Go runtime handles as a preemption: the goroutine parks, Loam
serves the call as if package syscall had made it, and the call may block. In three cases Loam cannot serve the call, and it
returns ENOSYS: a 32-bit call; a call from assembly code that other assembly code called; a call between the runtime's
functions entersyscall and exitsyscall. The program ends if it makes such a call while the runtime blocks signals, or before
the runtime has installed its signal handler.

If a program has published ports (` + "`-p`" + `) and uses the gateway, it has a socket over which the ` + "`loam`" + ` command passes TCP
connections that it has accepted on the host (decision 25). The table calls them connections that were *handed over*; calls
on them are allowed only if this socket exists. After the start, a program gets no other descriptors of the host, except an
epoll set and an eventfd for the runtime.

The table has a row for each allowed call. Its columns are:

- *allowed from*: the functions that may make the call. ` + "`Syscall6`" + ` of package
  ` + "`internal/runtime/syscall/linux`" + ` is the function by which the Go runtime makes calls for which it has no assembly. Package
  syscall also uses it, for calls that Loam passes to the host.
- *only if*: conditions on the arguments. Semicolons separate conditions; all of them must hold.
- *result*: an empty cell means that the host executes the call. ENOENT and EINVAL mean that the call returns this
  error and the host does not execute it. "Once" means that Loam's package ` + "`unikernel/sandbox`" + ` performs the first call for
  the process: the first execveat starts the program, the first openat2 opens /proc/self/maps. Later calls return ENOSYS.

`

const documentEnd = `
## What a hostile program can still do

The hostile programs in ` + "`unikernel/testdata/hostile`" + `, one for each technique, try to read, write, start or signal
something outside. ` + "`go test ./unikernel -run Hostile`" + ` runs them all, as a process and in a machine. Independent
reviewers broke an earlier version of the seal. Since 23 November 2026, a program is confined before its first instruction;
only the authors have reviewed this version.

A program with assembly code of its own can jump to the SYSCALL instruction in Syscall6. So the column *allowed from* does not
stop a hostile program. Only the checks of the call's number and arguments (*only if*) do. With the allowed calls, a
program can use these parts of the host:

- Its standard streams: it can read all further input, and write any output, also to a terminal. It can set the
  terminal's settings and size, but not its foreground group.
- Its links: it can send any packet. The gateway of the loam command, or Linux for a TAP device, checks the packets.
- Its ` + "`:rw`" + ` folders: it can send any message to their servers, which check each message. The memory that a program shares
  with a server is the only file that it can map for writing; the size of this memory is sealed.
- With ` + "`--pcap`" + ` and a TAP device, the capture file: it can write any data to that file, without a limit.
- The connections that were handed over: it can exchange data only with the clients that had connected.
- Information about the host: it can read the environment of the loam command, the paths in /proc/self/maps, the size of the
  host's memory, the release of the host's kernel, and the time since the host started.
- Processor time, threads and memory: it can use as much as the limits of the loam command allow.

The loam command also checks the program's file. It rejects a file that replaces functions of the Go runtime, defines the
variables of cgo, or has an ELF interpreter or constructors of C code, and its message names the Go package. This check only
gives better error messages: the layers above do not depend on it.

On newer releases of Linux, every seccomp filter lets the system call uretprobe(2) pass. It raises SIGILL if no probe is
installed.

Through the gateway, a program can reach every address that the user can reach, except the host's loopback network.
This includes the host's other addresses and the addresses on its links, such as 169.254.169.254. With ` + "`--net none`" + `
it can reach nothing.

Bugs of Linux in the allowed calls, and bugs of the processor, may let a program escape.
`
