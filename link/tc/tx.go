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

// Tx sends frames. Only one goroutine at a time may use it. Slot returns room for a frame, Put sets
// its length, and Kick sends all frames that were put.
type Tx struct {
	frames  *ebpf.Map // entry 0 is the control block, the others are slots
	program *ebpf.Program
	control *control // entry 0 of memory
	memory  []byte
	entry   int // bytes of a map entry
	slots   int
	put     int // frames put since the last Kick that sent all of them
	sent    uint64
	run     testRun
	name    string
	socket  int // socket for ioctls about the interface
}

// control is the control block: the position in the slots, which the eBPF program and the process share.
type control struct {
	next  uint32 // index of the next frame to send; the program increments it
	count uint32 // number of frames put
	errno int32  // why that frame was not sent, from the kernel's function: negative, an error; positive, a verdict of a queue
}

// slotHeader is the length in bytes of the header of a slot. Its first 4 bytes are the length of
// the frame.
const slotHeader = 8

// TxConfig describes a Tx to open.
type TxConfig struct {
	Interface string
	Slots     int // most frames that may be put before a Kick; default 64
	Size      int // longest frame in bytes; default 1514, at most 4096
}

const (
	defaultSlots = 64
	defaultSize  = 1514
	maxSize      = 1 << 12 // the kernel creates the packet in at most one page
)

// runLength is the number of frames that the program passes to the kernel in one run. The kernel
// then does the work that follows.
//
// If the other end is on the same machine, frames and replies wait in a queue that is processed 64
// at a time (net.core.dev_weight); 32 frames with their replies leave nothing behind. The far host
// also has room for only some 150 echo replies in transit (the send buffer of its ICMP socket).
// Measured on a busy machine: with 64 frames, one reply in a hundred was lost, and with 256, four
// in ten. 32 frames gain most of what 256 gain.
const runLength = 32

// OpenTx opens a Tx on an interface. It requires CAP_BPF and CAP_NET_ADMIN.
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
	const align = 64 // a cache line
	t = &Tx{slots: c.Slots, entry: (slotHeader + c.Size + align - 1) &^ (align - 1), name: c.Interface, socket: -1}
	if err := t.open(i.Index, c.Size); err != nil {
		t.Close()
		return nil, explain(c.Interface, err)
	}
	return t, nil
}

// open creates the map of slots and loads the program that sends by the interface with the given index.
// On error, the caller calls Close.
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

// Slot returns the room for the next frame, or nil if all slots are full. It contains the bytes of
// an earlier frame.
func (t *Tx) Slot() []byte {
	if t.put == t.slots {
		return nil
	}
	at := (1 + t.put) * t.entry
	return t.memory[at+slotHeader : at+t.entry : at+t.entry]
}

// Put adds the slot that Slot returned to the frames that the next Kick sends. n is the length of
// the frame in bytes, and must be more than an Ethernet header.
func (t *Tx) Put(n int) {
	setLength(t.memory[(1+t.put)*t.entry:], n)
	t.put++
}

// Waiting returns the number of frames put and not yet sent.
func (t *Tx) Waiting() int { return t.put - int(t.control.next) }

// Sent returns the number of frames that the interface has accepted since the Tx was opened.
func (t *Tx) Sent() uint64 { return t.sent }

// Kick sends the frames that were put, in order, until the interface accepts no more. It then
// returns the error, and the next Kick continues. It does not notify the Go scheduler of the system
// call, so it is for threads that have nothing else to do.
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
			return unix.ENODEV // bpf_clone_redirect returns EINVAL if the interface does not exist
		}
		return unix.Errno(-c.errno)
	}
	if errno == 0 && c.errno > 0 {
		return unix.ENOBUFS // a queue or the other end dropped the frame
	}
	if errno == 0 || errno == unix.EINTR { // the program ran fewer times than requested
		return unix.EAGAIN
	}
	return errno
}

// Close releases the program and its memory. It may be called more than once.
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

// Offsets in struct __sk_buff, and the registers of the program.
const (
	skbLen, skbQueue = 0, 12

	context = asm.R6
	index   = asm.R7 // index of the next frame
	left    = asm.R8 // frames left in this run
	shared  = asm.R9 // the control block
)

// sender returns the program that sends up to runLength frames:
//
//	for index = control.next; index < control.count; index++
//	    overwrite the packet of this run with the frame in slot index
//	    send a clone of it
//	    if that fails: control.errno = why, end
//	control.next = index
//
// The program selects the interface queue of the current processor, so the kernel does not hash the
// packet to select one.
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
		asm.Add.Imm(asm.R0, 1), // 0 means no queue
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

// congestion is the verdict of a queue that took the frame but wants no more for now (NET_XMIT_CN).
// The queue of an interface that is down returns it too, and takes nothing.
const congestion = 2

// up reports whether the interface is up.
func (t *Tx) up() bool {
	r, err := unix.NewIfreq(t.name)
	return err == nil && unix.IoctlIfreq(t.socket, unix.SIOCGIFFLAGS, r) == nil && r.Uint16()&unix.IFF_UP != 0
}
