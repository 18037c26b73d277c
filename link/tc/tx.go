//go:build linux

package tc

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Tx sends frames. It is used by one goroutine. A frame is written to where Slot says,
// Put says how long it is, and Kick sends all that were put.
type Tx struct {
	frames  *ebpf.Map // entry 0 is control, the others are slots
	program *ebpf.Program
	control *control // in memory, as the slots are
	memory  []byte
	entry   int // bytes of an entry
	slots   int
	put     int // frames since the last Kick that sent all
	sent    uint64
	run     testRun
	name    string
	socket  int // for asking about the interface
}

// control is what the program and we tell each other.
type control struct {
	next  uint32 // the frame that goes next; the program counts it up
	count uint32 // frames that were put
	errno int32  // why it did not go: what the kernel's function returned, an error or a verdict of a queue
}

// slotHeader is in front of a frame: its length, in 4 bytes of 8.
const slotHeader = 8

// TxConfig describes a Tx to open.
type TxConfig struct {
	Interface string
	Slots     int // frames that may be put before a Kick; default 64
	Size      int // of the longest frame, in bytes; default 1514
}

const (
	defaultSlots = 64
	defaultSize  = 1514
	maxSize      = 1 << 12 // the memory that the kernel makes a packet of is at most a page
)

// runLength is how many frames the kernel is given before it does what follows from them.
// Where the other end is a Linux on this machine, frames and answers wait in a queue that
// is worked on 64 at a time (net.core.dev_weight), so that this many leave nothing behind;
// and the far host has room for some 150 answers to echoes on their way (the send buffer
// of its socket for ICMP): with 64, measured, one in a hundred was lost where the machine
// was busy, with 256 four of ten. Of what 256 saved, 32 save most.
const runLength = 32

// OpenTx opens one.
func OpenTx(c TxConfig) (t *Tx, err error) {
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", c.Interface)
	}
	if c.Slots == 0 {
		c.Slots = defaultSlots
	}
	if c.Size == 0 {
		c.Size = defaultSize
	}
	if c.Size > maxSize {
		return nil, fmt.Errorf("%s: frames of %d bytes are longer than %d, which is what a program sends", c.Interface, c.Size, maxSize)
	}
	const align = 64 // a line of the cache
	t = &Tx{slots: c.Slots, entry: (slotHeader + c.Size + align - 1) &^ (align - 1), name: c.Interface, socket: -1}
	if err := t.open(i.Index, c.Size); err != nil {
		t.Close()
		return nil, explain(c.Interface, err)
	}
	return t, nil
}

func (t *Tx) open(index, size int) (err error) {
	if t.socket, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	t.frames, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "loam_tx", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(t.entry), MaxEntries: uint32(1 + t.slots), Flags: unix.BPF_F_MMAPABLE,
	})
	if err != nil {
		return err
	}
	if t.memory, err = mapEntries(t.frames, t.entry, 1+t.slots); err != nil {
		return err
	}
	t.control = controlAt(t.memory)
	t.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "loam_tx", Type: ebpf.SchedCLS, Instructions: sender(t.frames.FD(), index, size), License: "GPL"})
	if err == nil {
		t.run = testRun{program: uint32(t.program.FD())}
	}
	return err
}

// Slot is the place for the next frame: nil if all are full. It holds what was written
// there before.
func (t *Tx) Slot() []byte {
	if t.put == t.slots {
		return nil
	}
	at := (1 + t.put) * t.entry
	return t.memory[at+slotHeader : at+t.entry : at+t.entry]
}

// Put has the first n bytes of the slot sent by the next Kick, at least an Ethernet
// header and a byte.
func (t *Tx) Put(n int) {
	setLength(t.memory[(1+t.put)*t.entry:], n)
	t.put++
}

// Waiting is how many frames were put and have not been sent.
func (t *Tx) Waiting() int { return t.put - int(t.control.next) }

// Sent is how many frames the interface took since the Tx was opened.
func (t *Tx) Sent() uint64 { return t.sent }

// Kick sends what was put, in order, until the interface takes no more: then it
// returns how that was called, and the next Kick goes on. It does not tell the
// scheduler that it is in a system call: for threads that have nothing else to do.
func (t *Tx) Kick() unix.Errno {
	if t.put == 0 {
		return 0
	}
	c := t.control
	before := c.next
	c.count, c.errno = uint32(t.put), 0
	first := t.memory[(1+int(before))*t.entry:]
	errno := t.run.times(first[slotHeader:][:length(first)], (t.Waiting()+runLength-1)/runLength)
	if errno == 0 && c.errno == congestion {
		if !t.up() {
			c.errno = -int32(unix.ENETDOWN)
		} else {
			c.next++
		}
	}
	t.sent += uint64(c.next - before)
	if int(c.next) == t.put {
		t.put, c.next = 0, 0
		return 0
	}
	if errno == 0 && c.errno < 0 {
		if unix.Errno(-c.errno) == unix.EINVAL && !t.up() {
			return unix.ENODEV // as the program is told
		}
		return unix.Errno(-c.errno)
	}
	if errno == 0 && c.errno > 0 {
		return unix.ENOBUFS // a queue or the other end let it fall
	}
	if errno == 0 || errno == unix.EINTR { // it ran less often than it was asked to
		return unix.EAGAIN
	}
	return errno
}

// Close ends it. It may be called again.
func (t *Tx) Close() error {
	var all []error
	if t.program != nil {
		all = append(all, t.program.Close())
	}
	if t.memory != nil {
		all = append(all, unix.Munmap(t.memory))
	}
	if t.frames != nil {
		all = append(all, t.frames.Close())
	}
	if t.socket >= 0 {
		all = append(all, unix.Close(t.socket))
		t.socket = -1
	}
	t.program, t.memory, t.frames, t.control = nil, nil, nil, nil
	return errors.Join(all...)
}

// Offsets of struct __sk_buff, and the registers of the program.
const (
	skbLen, skbQueue = 0, 12

	context = asm.R6
	index   = asm.R7 // of the frame that goes next
	left    = asm.R8 // of this run
	shared  = asm.R9 // control
)

// sender is the program that sends up to runLength frames:
//
//	for index = control.next; index < control.count; index++
//	    write the frame of slot index over the packet that the program was given
//	    send a clone of it
//	    if it does not go: control.errno = why, end
//	control.next = index
//
// The queue of the interface is that of the processor: then nobody has to find one by
// hashing the packet.
func sender(frames, device, size int) asm.Instructions {
	lookUp := func(key asm.Instruction, none string) asm.Instructions {
		return asm.Instructions{
			key,
			asm.LoadMapPtr(asm.R1, frames), asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, none),
		}
	}
	var code asm.Instructions
	add := func(in ...asm.Instruction) { code = append(code, in...) }
	add(asm.Mov.Reg(context, asm.R1))
	add(lookUp(asm.StoreImm(asm.R10, -4, 0, asm.Word), "end")...)
	add(
		asm.Mov.Reg(shared, asm.R0),
		asm.FnGetSmpProcessorId.Call(),
		asm.Add.Imm(asm.R0, 1), // 0 is none
		asm.StoreMem(context, skbQueue, asm.R0, asm.Word),
		asm.LoadMem(index, shared, nextAt, asm.Word),
		asm.Mov.Imm(left, runLength),
	)
	add(asm.LoadMem(asm.R1, shared, countAt, asm.Word).WithSymbol("again"),
		asm.JGE.Reg(index, asm.R1, "done"),
		asm.Mov.Reg(asm.R1, index),
		asm.Add.Imm(asm.R1, 1))
	add(lookUp(asm.StoreMem(asm.R10, -4, asm.R1, asm.Word), "done")...)
	add(
		asm.StoreMem(asm.R10, -16, asm.R0, asm.DWord),
		asm.LoadMem(asm.R2, asm.R0, 0, asm.Word),
		asm.JGT.Imm(asm.R2, int32(size), "done"),
		asm.JEq.Imm(asm.R2, 0, "done"),
		asm.LoadMem(asm.R1, context, skbLen, asm.Word),
		asm.JEq.Reg(asm.R1, asm.R2, "write"),
		asm.Mov.Reg(asm.R1, context),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnSkbChangeTail.Call(),
		asm.JNE.Imm(asm.R0, 0, "failed"),
		asm.LoadMem(asm.R3, asm.R10, -16, asm.DWord).WithSymbol("write"),
		asm.LoadMem(asm.R4, asm.R3, 0, asm.Word),
		asm.JGT.Imm(asm.R4, int32(size), "done"),
		asm.JEq.Imm(asm.R4, 0, "done"),
		asm.Add.Imm(asm.R3, slotHeader),
		asm.Mov.Reg(asm.R1, context),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "failed"),
		asm.Mov.Reg(asm.R1, context),
		asm.Mov.Imm(asm.R2, int32(device)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnCloneRedirect.Call(),
		asm.JNE.Imm(asm.R0, 0, "failed"),
		asm.Add.Imm(index, 1),
		asm.Sub.Imm(left, 1),
		asm.JNE.Imm(left, 0, "again"),
		asm.Ja.Label("done"),
		asm.StoreMem(shared, errnoAt, asm.R0, asm.Word).WithSymbol("failed"),
		asm.StoreMem(shared, nextAt, index, asm.Word).WithSymbol("done"),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
		asm.Return(),
	)
	return code
}

// congestion is what a queue says that took the frame and wants no more soon
// (NET_XMIT_CN); and so does that of an interface which is down, and takes nothing.
const congestion = 2

// up reports whether the interface is.
func (t *Tx) up() bool {
	r, err := unix.NewIfreq(t.name)
	return err == nil && unix.IoctlIfreq(t.socket, unix.SIOCGIFFLAGS, r) == nil && r.Uint16()&unix.IFF_UP != 0
}
