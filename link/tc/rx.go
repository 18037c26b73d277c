//go:build linux

package tc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"loam/link/filter"
	"loam/link/match"
)

// Rx receives frames. Only one goroutine at a time may use it, except for Drops and Passed.
type Rx struct {
	records *ebpf.Map
	counts  *ebpf.Map // counters of dropped frames and of passed frames
	program *ebpf.Program
	link    link.Link
	ring    *ring
	memory  []byte
	dropped *atomic.Uint64
	passed  *atomic.Uint64
}

// Entries of counts.
const (
	droppedEntry = iota
	passedEntry
	countEntries
)

// RxConfig describes an Rx to open.
type RxConfig struct {
	Interface string
	Match     []match.Rule // frames to take away from the kernel; no rules: every frame
	// Share and Shares divide the frames among several Rx by processor: each takes the frames
	// handled by the processors whose number modulo Shares is Share. Shares 0 means 1. Frames of a
	// share without an Rx go to the kernel.
	Share, Shares int
	// Bytes is the size of the ring, rounded up to a power of two; default 2 MiB. A frame takes the
	// smallest of Sizes that it fits into, and 24 bytes more.
	Bytes int
}

// Sizes are the possible sizes of the frame in a record, in bytes: the kernel must know the size in
// advance. The first is enough for the reply to a small echo over IPv4 or IPv6. The second is
// enough for an ICMP error that quotes a small packet, or for any headers.
var Sizes = [...]int32{80, 144, 400, Longest}

// Longest is the most bytes of a frame that are copied.
const Longest = 2048 - frameAt - recordHeader

// Layout of a record: 4 bytes length of the frame, 4 bytes zero, 8 bytes time stamp
// (CLOCK_MONOTONIC, ns), the frame.
const (
	timeAt  = 8
	frameAt = 16
)

// defaultBytes is the default size of the ring in bytes. It is enough for the records of 8192 frames of Sizes[1].
const defaultBytes = 2 << 20

// OpenRx opens an Rx on an interface. It requires CAP_BPF and CAP_NET_ADMIN.
func OpenRx(c RxConfig) (*Rx, error) {
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", c.Interface)
	}
	c.Shares = max(1, c.Shares)
	r := &Rx{}
	if err := r.open(c, i.Index); err != nil {
		r.Close()
		return nil, explain(c.Interface, err)
	}
	return r, nil
}

// open creates the maps, loads the program and attaches it. On error, the caller calls Close.
func (r *Rx) open(c RxConfig, index int) (err error) {
	size := 1 << 12
	for ; size < c.Bytes || c.Bytes == 0 && size < defaultBytes; size *= 2 {
	}
	if r.records, err = ebpf.NewMap(&ebpf.MapSpec{Name: "loam_rx", Type: ebpf.RingBuf, MaxEntries: uint32(size)}); err != nil {
		return err
	}
	if r.ring, err = mapRing(r.records); err != nil {
		return err
	}
	const word = 8
	if r.counts, err = ebpf.NewMap(&ebpf.MapSpec{Name: "loam_drops", Type: ebpf.Array, KeySize: 4, ValueSize: word, MaxEntries: countEntries, Flags: unix.BPF_F_MMAPABLE}); err != nil {
		return err
	}
	if r.memory, err = mapEntries(r.counts, word, countEntries); err != nil {
		return err
	}
	r.dropped, r.passed = counterAt(r.memory[droppedEntry*word:]), counterAt(r.memory[passedEntry*word:])
	code, err := filter.Assemble(filter.TC, c.Match, r.take())
	if err != nil {
		return err
	}
	code = append(r.share(c), code...)
	r.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "loam_rx", Type: ebpf.SchedCLS, Instructions: code, License: "GPL"})
	if err != nil {
		return err
	}
	r.link, err = link.AttachTCX(link.TCXOptions{Interface: index, Program: r.program, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
	return err
}

// Verdicts of a program (enum tcx_action_base).
const (
	leave = -1 // the frame goes to the next program, and then to the kernel (TCX_NEXT)
	drop  = 2
)

// share returns the instructions that leave two kinds of frames to the kernel: frames of other
// shares, and frames that differ from what was on the wire. The latter have a VLAN tag that the
// kernel removed, or still need segmentation, and are counted.
func (r *Rx) share(c RxConfig) asm.Instructions {
	const skbTagPresent, skbSegment = 20, 176
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetSmpProcessorId.Call(),
		asm.Mod.Imm(asm.R0, int32(c.Shares)),
		asm.JNE.Imm(asm.R0, int32(c.Share), "others"),
		asm.LoadMem(asm.R1, asm.R6, skbTagPresent, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "passed"),
		asm.LoadMem(asm.R1, asm.R6, skbSegment, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "ours"),
	}
	code = append(code, r.tally(passedEntry, "passed", "others")...)
	return append(code,
		asm.Mov.Imm(asm.R0, leave).WithSymbol("others"),
		asm.Return(),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("ours"))
}

// tally returns instructions that increment a counter of the receiver. name is their label, and next the
// label of the instruction that follows them.
func (r *Rx) tally(entry int64, name, next string) asm.Instructions {
	const key = -4
	return asm.Instructions{
		asm.StoreImm(asm.R10, key, entry, asm.Word).WithSymbol(name),
		asm.LoadMapPtr(asm.R1, r.counts.FD()),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, next),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
	}
}

// take returns the instructions that copy the frame to the ring and drop it. They do not wake a
// reader.
func (r *Rx) take() asm.Instructions {
	const (
		record, size, dropped = asm.R7, asm.R8, "dropped"
		dontWake              = 1
	)
	name := func(class int) string { return fmt.Sprintf("class%d", class) }
	var code asm.Instructions
	add := func(in ...asm.Instruction) { code = append(code, in...) }
	add(asm.LoadMem(size, filter.Context, skbLen, asm.Word),
		asm.JEq.Imm(size, 0, dropped),
		asm.JLE.Imm(size, Longest, name(0)),
		asm.Mov.Imm(size, Longest))
	for class, room := range Sizes {
		larger := dropped // the label of the first record size, to which no jump leads
		if class+1 < len(Sizes) {
			larger = name(class + 1)
		}
		add(asm.JGT.Imm(size, room, larger).WithSymbol(name(class)),
			asm.LoadMapPtr(asm.R1, r.records.FD()),
			asm.Mov.Imm(asm.R2, frameAt+room),
			asm.Mov.Imm(asm.R3, 0),
			asm.FnRingbufReserve.Call(),
			asm.JEq.Imm(asm.R0, 0, dropped),
			asm.Mov.Reg(record, asm.R0),
			asm.StoreMem(record, 0, size, asm.DWord),
			asm.FnKtimeGetNs.Call(),
			asm.StoreMem(record, timeAt, asm.R0, asm.DWord),
			asm.Mov.Reg(asm.R1, filter.Context),
			asm.Mov.Imm(asm.R2, 0),
			asm.Mov.Reg(asm.R3, record),
			asm.Add.Imm(asm.R3, frameAt),
			asm.Mov.Reg(asm.R4, size),
			asm.FnSkbLoadBytes.Call(),
			asm.Mov.Reg(asm.R1, record),
			asm.Mov.Imm(asm.R2, dontWake),
			asm.FnRingbufSubmit.Call(),
			asm.Mov.Imm(asm.R0, drop),
			asm.Return())
	}
	add(r.tally(droppedEntry, dropped, "gone")...)
	add(asm.Mov.Imm(asm.R0, drop).WithSymbol("gone"), asm.Return())
	return code
}

// Next returns the next received frame and its time stamp in nanoseconds of CLOCK_MONOTONIC. It
// does not block; ok is false if there is none. The frame may be read until Release. A frame longer
// than Longest is truncated.
func (r *Rx) Next() (frame []byte, at int64, ok bool) {
	record, ok := r.ring.next()
	if !ok {
		return nil, 0, false
	}
	n := min(int(binary.NativeEndian.Uint32(record)), len(record)-frameAt)
	return record[frameAt:][:n:n], int64(binary.NativeEndian.Uint64(record[timeAt:])), true
}

// Release returns the room of all frames that Next has returned to the kernel.
func (r *Rx) Release() { r.ring.release() }

// Drops returns the number of frames that matched and were dropped because the ring was full. Any
// goroutine may call it while the Rx is open.
func (r *Rx) Drops() uint64 { return r.dropped.Load() }

// Passed returns the number of frames left to the kernel because of a VLAN tag or because they
// still need segmentation, whether they match or not. Any goroutine may call it while the Rx is
// open.
func (r *Rx) Passed() uint64 { return r.passed.Load() }

// Close detaches the program from the interface. It may be called more than once.
func (r *Rx) Close() error {
	var all []error
	if r.link != nil {
		all = append(all, r.link.Close())
	}
	if r.program != nil {
		all = append(all, r.program.Close())
	}
	if r.ring != nil {
		r.ring.unmap()
	}
	if r.memory != nil {
		all = append(all, unix.Munmap(r.memory))
	}
	for _, m := range []*ebpf.Map{r.records, r.counts} {
		if m != nil {
			all = append(all, m.Close())
		}
	}
	*r = Rx{}
	return errors.Join(all...)
}

// explain adds advice to an error of opening. It keeps only the first line of errors of the
// kernel's verifier and of the eBPF library, which have several.
func explain(name string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w: programs of eBPF need CAP_BPF and CAP_NET_ADMIN: run as root", name, unix.EPERM)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("%s: %w: programs at tcx take Linux 6.6 or later", name, ebpf.ErrNotSupported)
	}
	first, _, more := strings.Cut(err.Error(), "\n")
	if !more {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s: %s", name, first)
}
