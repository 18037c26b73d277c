package seal

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"loam/posix"
)

// Where the tests have code: each function one instruction, in the order of their
// first mention.
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

// testProcess has numbers that stand nowhere else.
var testProcess = Process{PID: 4711, Socket: 9, First: 12}

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

// run is what the kernel does with a filter.
func run(t *testing.T, filter []Instruction, r request) uint32 {
	t.Helper()
	accumulator := uint32(0)
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
		case opReturn:
			return i.K
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
	filter, err := Filter(Calls, testPlaces(), testProcess)
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// fitting are arguments that the tests of a call let pass.
func fitting(c Call) (args [6]uint64) {
	for _, test := range c.If {
		switch test.Kind {
		case Self:
			args[test.Arg] = uint64(testProcess.PID) | 1<<32 // the kernel looks at the lower half
		case Equal, Set, AtLeast:
			args[test.Arg] = uint64(test.Values[0])
		case Socket:
			args[test.Arg] = uint64(testProcess.Socket)
		case Handed:
			args[test.Arg] = uint64(testProcess.First)
		}
	}
	return args
}

// Every call of the table passes from each of its places, and from no other; and
// as none of another architecture or kind of number.
func TestTable(t *testing.T) {
	filter := testFilter(t)
	for _, c := range Calls {
		for _, p := range testPlaces() {
			want := uint32(retTrap)
			if c.From == nil || slices.Contains(c.From, p.Name) {
				want = retAllow
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

// A function of the table that is nowhere is an error, and not a call less.
func TestUnknownPlace(t *testing.T) {
	if _, err := Filter(Calls, testPlaces()[:2], testProcess); err == nil {
		t.Error("a filter without most of its places")
	}
}

// What the personality leaves to the host passes, from package syscall at least.
func TestHostCalls(t *testing.T) {
	for _, number := range posix.HostCalls {
		if !slices.ContainsFunc(Calls, func(c Call) bool {
			return c.Number == uint32(number) && (c.From == nil || slices.Contains(c.From, Gate))
		}) {
			t.Errorf("call %d is the host's, and sealed", number)
		}
	}
}

// Arguments that must not pass, from where the call itself may be made.
func TestArguments(t *testing.T) {
	filter := testFilter(t)
	const anonymous = syscall.MAP_ANONYMOUS | syscall.MAP_PRIVATE
	for _, c := range []struct {
		what   string
		number uint32
		from   string
		args   [6]uint64
		want   uint32
	}{
		{"memory", syscall.SYS_MMAP, "runtime.sysMmap", [6]uint64{0, 4096, syscall.PROT_READ | syscall.PROT_WRITE, anonymous, ^uint64(0)}, retAllow},
		{"a file", syscall.SYS_MMAP, "runtime.sysMmap", [6]uint64{0, 4096, syscall.PROT_READ, syscall.MAP_PRIVATE, 3}, retTrap},
		{"a thread", syscall.SYS_CLONE, "runtime.clone", [6]uint64{cloneThread}, retAllow},
		{"a thread with its storage", syscall.SYS_CLONE, "runtime.clone", [6]uint64{cloneThread | syscall.CLONE_SETTLS}, retAllow},
		{"a process", syscall.SYS_CLONE, "runtime.clone", [6]uint64{uint64(syscall.SIGCHLD)}, retTrap},
		{"vfork", syscall.SYS_CLONE, "runtime.clone", [6]uint64{syscall.CLONE_VM | syscall.CLONE_VFORK}, retTrap},
		{"a thread in a new namespace", syscall.SYS_CLONE, "runtime.clone", [6]uint64{cloneThread | syscall.CLONE_NEWUSER}, retTrap},
		{"a signal to itself", syscall.SYS_KILL, "runtime.raiseproc", [6]uint64{uint64(testProcess.PID), 15}, retAllow},
		{"a signal to the parent", syscall.SYS_KILL, "runtime.raiseproc", [6]uint64{1, 9}, retTrap},
		{"a signal to its group", syscall.SYS_KILL, "runtime.raiseproc", [6]uint64{0, 9}, retTrap},
		{"a signal to another's thread", syscall.SYS_TGKILL, "runtime.tgkill", [6]uint64{1, 1, 9}, retTrap},
		{"the name of memory", syscall.SYS_PRCTL, Gate, [6]uint64{prSetVMA}, retAllow},
		{"the limits of another", syscall.SYS_PRLIMIT64, "program", [6]uint64{1}, retTrap},
		{"its own limits", syscall.SYS_PRLIMIT64, "program", [6]uint64{0}, retAllow},
		{"the size of core dumps", syscall.SYS_PRLIMIT64, "program", [6]uint64{0, syscall.RLIMIT_CORE}, retTrap},
		{"the size of core dumps, as it was", syscall.SYS_SETRLIMIT, "program", [6]uint64{syscall.RLIMIT_CORE}, retTrap},
		{"the size of files", syscall.SYS_SETRLIMIT, "program", [6]uint64{syscall.RLIMIT_FSIZE}, retAllow},
		{"memory that is needed no more", syscall.SYS_MADVISE, "program", [6]uint64{0, 4096, syscall.MADV_DONTNEED}, retAllow},
		{"memory of the machine that is broken", syscall.SYS_MADVISE, "program", [6]uint64{0, 4096, 100}, retTrap},
		{"memory of the machine that may be", syscall.SYS_MADVISE, "program", [6]uint64{0, 4096, 101}, retTrap},
		{"advice below zero", syscall.SYS_MADVISE, "program", [6]uint64{0, 4096, 1<<64 - 1}, retTrap},
		{"the processors of another", syscall.SYS_SCHED_SETAFFINITY, "program", [6]uint64{1}, retTrap},
		{"a key for the terminal", syscall.SYS_IOCTL, Gate, [6]uint64{0, syscall.TIOCSTI}, retTrap},
		{"the size of a terminal", syscall.SYS_IOCTL, Gate, [6]uint64{0, syscall.TIOCGWINSZ}, retAllow},
		{"the size of a terminal that is no standard stream", syscall.SYS_IOCTL, Gate, [6]uint64{3, syscall.TIOCGWINSZ}, retTrap},
		{"the foreground of the terminal", syscall.SYS_IOCTL, Gate, [6]uint64{0, syscall.TIOCSPGRP}, retTrap},
		{"a frame to standard input", syscall.SYS_SENDMSG, Gate, [6]uint64{0, 0, syscall.MSG_DONTWAIT}, retTrap},
		{"a frame of standard input", syscall.SYS_READV, Gate, [6]uint64{0}, retTrap},
		{"a frame of a link", syscall.SYS_READV, Gate, [6]uint64{3}, retAllow},
		{"standard input from its beginning", syscall.SYS_PREAD64, Gate, [6]uint64{0, 0, 1, 0}, retTrap},
		{"/proc/self/maps", syscall.SYS_PREAD64, Gate, [6]uint64{3, 0, 1, 0}, retAllow},
		{"a connection", syscall.SYS_RECVMSG, Gate, [6]uint64{9}, retAllow},
		{"a message of another socket", syscall.SYS_RECVMSG, Gate, [6]uint64{8}, retTrap},
		{"a message of a connection", syscall.SYS_RECVMSG, Gate, [6]uint64{12}, retTrap},
		{"the end of a connection", syscall.SYS_SHUTDOWN, Gate, [6]uint64{100}, retAllow},
		{"the end of a link", syscall.SYS_SHUTDOWN, Gate, [6]uint64{11}, retTrap},
		{"the end of a negative number", syscall.SYS_SHUTDOWN, Gate, [6]uint64{1<<32 - 1}, retTrap},
		{"bytes with a flag", syscall.SYS_SENDTO, Gate, [6]uint64{12, 0, 1, syscall.MSG_NOSIGNAL}, retAllow},
		{"bytes from a link", syscall.SYS_SENDTO, Gate, [6]uint64{11, 0, 1, syscall.MSG_NOSIGNAL}, retTrap},
		{"bytes to somebody new", syscall.SYS_SENDTO, Gate, [6]uint64{12, 0, 1, msgFastOpen | syscall.MSG_NOSIGNAL}, retTrap},
		{"a message to somebody new", syscall.SYS_SENDMSG, Gate, [6]uint64{12, 0, msgFastOpen}, retTrap},
		{"a frame", syscall.SYS_SENDMSG, Gate, [6]uint64{4, 0, syscall.MSG_DONTWAIT}, retAllow},
		{"no delay", syscall.SYS_SETSOCKOPT, Gate, [6]uint64{12, syscall.IPPROTO_TCP, syscall.TCP_NODELAY}, retAllow},
		{"no delay of a link", syscall.SYS_SETSOCKOPT, Gate, [6]uint64{4, syscall.IPPROTO_TCP, syscall.TCP_NODELAY}, retTrap},
		{"repair of a connection", syscall.SYS_SETSOCKOPT, Gate, [6]uint64{12, syscall.IPPROTO_TCP, 19}, retTrap},
		{"another protocol above TCP", syscall.SYS_SETSOCKOPT, Gate, [6]uint64{12, syscall.IPPROTO_TCP, 31}, retTrap},
		{"a filter of its own", syscall.SYS_SETSOCKOPT, Gate, [6]uint64{12, syscall.SOL_SOCKET, syscall.SO_ATTACH_FILTER}, retTrap},
		{"TCP_INFO", syscall.SYS_GETSOCKOPT, Gate, [6]uint64{12, syscall.IPPROTO_TCP, syscall.TCP_INFO}, retAllow},
		{"a descriptor of the peer's process", syscall.SYS_GETSOCKOPT, Gate, [6]uint64{12, syscall.SOL_SOCKET, 77}, retTrap},
		{"a copy of a connection", syscall.SYS_FCNTL, Gate, [6]uint64{12, syscall.F_DUPFD_CLOEXEC, 12}, retAllow},
		{"a copy of a link", syscall.SYS_FCNTL, Gate, [6]uint64{4, syscall.F_DUPFD_CLOEXEC, 12}, retTrap},
		{"another mode of a connection", syscall.SYS_FCNTL, Gate, [6]uint64{12, syscall.F_SETFL, 0}, retTrap},
		{"a signal at the parent's end", syscall.SYS_PRCTL, Gate, [6]uint64{syscall.PR_SET_PDEATHSIG}, retTrap},
	} {
		if got := run(t, filter, request{c.number, archAMD64, placeOf(c.from), c.args}); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.what, got, c.want)
		}
	}
}

// Without a socket to hand connections over by, no call about them is left.
func TestNothingHanded(t *testing.T) {
	filter, err := Filter(Calls, testPlaces(), Process{PID: testProcess.PID, Socket: -1, First: -1})
	if err != nil {
		t.Fatal(err)
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

// What opens, makes or changes anything of the host's is in no table.
func TestShut(t *testing.T) {
	filter := testFilter(t)
	for name, number := range map[string]uint32{
		"open": 2, "openat": 257, "openat2": 437, "socket": 41, "connect": 42, "accept4": 288, "execve": 59, "execveat": 322,
		"fork": 57, "vfork": 58, "clone3": 435, "ptrace": 101, "io_uring_setup": 425, "io_uring_enter": 426, "memfd_create": 319,
		"dup": 32, "dup3": 292, "fcntl": 72, "ioctl": 16, "epoll_create1": 291, "eventfd2": 290, "pidfd_open": 434, "pidfd_getfd": 438,
		"process_vm_readv": 310, "writev": 20, "recvmsg": 47, "bpf": 321, "seccomp": 317, "unshare": 272, "setns": 308, "mount": 165, "unlink": 87,
		"rename": 82, "mknod": 133, "shmget": 29, "userfaultfd": 323, "perf_event_open": 298, "keyctl": 250, "splice": 275, "sendfile": 40,
	} {
		for _, p := range testPlaces() {
			if got := run(t, filter, request{number: number, arch: archAMD64, place: p.After}); got != retTrap {
				t.Errorf("%s from %s: %#x", name, p.Name, got)
			}
		}
	}
}

// A program that is too long, or has a jump that is too far, is refused.
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

var update = flag.Bool("update", false, "write docs/seal.md anew")

// TestDocument keeps docs/seal.md; it is written anew by
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
		t.Errorf("docs/seal.md is not what the table says (%v): go test ./unikernel/seal -update", err)
	}
}

func document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	b.WriteString("| call | from | only if | what for |\n|---|---|---|---|\n")
	for _, c := range Calls {
		var tests []string
		for _, test := range c.If {
			tests = append(tests, test.Text)
		}
		from := strings.ReplaceAll(strings.Join(c.From, ", "), Gate, "the gate")
		if c.From == nil {
			from = "anywhere"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Name, from, strings.Join(tests, ", "), c.Why)
	}
	b.WriteString(documentEnd)
	return b.String()
}

const documentEnd = `
## What is left to a program that means harm

Reviewed by us on 22 November 2026, and not by anybody else: what follows was read, and tried by a
program that makes the calls of Linux by the gate, numbers 0 to 469, with descriptors, addresses and paths
that are not its own. Left out were 18 that are left to it and would have ended it or kept it waiting, and
uretprobe and its neighbour.

A program in Go without unsafe and assembly has package syscall. That leads to Loam, but for
descriptors above 1<<24, which are the host's: it can write to its links, and close its own
descriptors, which ends it.

A program with unsafe or assembly of its own can jump to the gate. So "from" holds back honest
assembly and nobody else; what holds back everybody are the number of a call and its arguments
("only if"). By these it has, of the host:

- Its own standard streams: what comes next from them, and anything that it likes to write there,
  to a terminal too, whose modes and size it can set, but not which group has it.
- Its links. What it sends there is looked at by the gateway of the loam command, or by Linux (a tap).
- With ` + "`--pcap`" + ` and a tap device the file of packets, to which it can write anything, without end.
- The connections that it was handed, to nobody but who had connected.
- What the host shows of itself: the environment of the loam command, all of it; the paths in
  /proc/self/maps; who runs it; how much memory the host has and how long it is up.
- Processor time, threads and memory, without a limit but those that the loam command had, of
  which root can raise its own.

It has no core dump: that would be a file of the host's with what the program likes in it. Set
RLIMIT_CORE as you will, the limit is one byte; use gcore(1) from outside. Root's privileges are not
taken away; what they allow beyond others' calls (MADV_HWPOISON) is shut. It is better not to run as root.

uretprobe(2), which newer kernels let past every filter, is SIGILL where nothing was probed.

The gateway lets a program reach what the user could, but for the host's loopback network: the
host's other addresses and those of its links, 169.254.169.254 among them, are open to it, as to
any program of the user's. ` + "`--net none`" + ` leaves nothing.

Flaws of Linux in the calls above, and of the processor, are a way out; of the calls that are shut
they are not.
`

const documentHead = `# What a process may ask of Linux

Made from the table in ` + "`unikernel/seal/table.go` by `go test ./unikernel/seal -update`" + `.

A program that Loam runs as a process has these calls of the host's left, and no others: a
filter (seccomp(2)) is set for all its threads before its first package is initialised, once
Loam has its links and files. What concerns nothing but the process itself may be called from
anywhere. Where a descriptor is concerned, or a signal, the call must be made by the Go
runtime's own instruction. "The gate" is the function by which the runtime makes the calls
that it has no assembly for; package syscall comes by it, after Loam has been asked, and Loam.

What else a program calls in assembly of its own traps. The runtime's signal handler makes an
ordinary preemption of that: the goroutine parks, and the call is served by Loam as if it had
been made by package syscall, and may wait. Where that cannot be (a 32-bit call; assembly that
was called by assembly; between entersyscall and exitsyscall) it returns ENOSYS. A call that
traps while the runtime holds signals back ends the program.

The descriptors that are there are the standard streams, the links, the file of ` + "`--pcap`" + `,
/proc/self/maps, and the runtime's own: an epoll set, an eventfd, and the limits of its control
group. What the loam command was given besides is closed. With ` + "`-p`" + ` and a network of the loam
command's there is one more, a socket by which that hands over connections that it has accepted
(decision 25); numbers below that had been free are copies of it. These connections are the only
descriptors that come later. They have the numbers from there on, and the calls that name "a
connection that was handed over" are left for them alone; where nothing is handed over, for none.

`
