//go:build linux

package tc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"loam/link/filter"
	"loam/link/match"
)

// Rx receives frames. It is used by one goroutine, but for Drops and Passed.
type Rx struct {
	records *ebpf.Map
	counts  *ebpf.Map // of frames that found no room, and of those that are passed on
	program *ebpf.Program
	link    link.Link
	ring    *ring
	memory  []byte
	dropped *atomic.Uint64
	passed  *atomic.Uint64
}

// Entries of the counts.
const (
	droppedEntry = iota
	passedEntry
	countEntries
)

// RxConfig describes an Rx to open.
type RxConfig struct {
	Interface string
	Match     []match.Rule // what it takes away from the kernel; no rule: every frame
	// Share and Shares are for several: each takes what comes to every Shares-th
	// processor, from the Share-th (from 0) on. Shares 0 is 1. Frames to processors whose
	// Rx is not there are the kernel's.
	Share, Shares int
	// Bytes of the ring, rounded up to a power of two; default 2 MiB. A frame takes the
	// least of Sizes that it fits, and 24 bytes.
	Bytes int
}

// Sizes are what a record has room for: the kernel wants to know it beforehand. The
// first is enough for an answer to a small echo of either version of IP, the second for
// an error that quotes a small packet, or all headers that there are.
var Sizes = [...]int32{80, 144, 400, Longest}

// Longest is the most of a frame that is copied, in bytes.
const Longest = 2048 - frameAt - recordHeader

// Record: the length of the frame in 4 bytes, nothing in 4, when it was taken in 8 by
// CLOCK_MONOTONIC, the frame.
const (
	timeAt  = 8
	frameAt = 16
)

// defaultBytes is enough for 8192 frames of the second size.
const defaultBytes = 2 << 20

// OpenRx opens one.
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
	leave = -1 // to the next program, and to the kernel
	drop  = 2
)

// share leaves the frames of other processors alone, and what is no frame as it was on
// a wire: one with a tag, which the kernel has taken out of it, or with so much payload
// that it is still to be cut up. These are counted.
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

// tally adds one to an entry of the counts, in code of a name in front of that of the name next.
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

// take copies the frame to the ring, and ends its way. Nobody is woken.
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
		larger := dropped // never
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

// Next is the next frame that is there, without waiting, and when it was taken, in
// nanoseconds of CLOCK_MONOTONIC. It may be read until Release. Of a frame that is
// longer than Longest there is only the front.
func (r *Rx) Next() (frame []byte, at int64, ok bool) {
	record, ok := r.ring.next()
	if !ok {
		return nil, 0, false
	}
	n := min(int(binary.NativeEndian.Uint32(record)), len(record)-frameAt)
	return record[frameAt:][:n:n], int64(binary.NativeEndian.Uint64(record[timeAt:])), true
}

// Release gives the room of all frames that Next has returned back.
func (r *Rx) Release() { r.ring.release() }

// Drops is how many frames agreed and found no room. Anybody may call it while the Rx
// is open.
func (r *Rx) Drops() uint64 { return r.dropped.Load() }

// Passed is how many frames were left to the kernel because of a VLAN's tag, or since they
// are still to be cut up, whether they agree or not. Anybody may call it while the Rx is open.
func (r *Rx) Passed() uint64 { return r.passed.Load() }

// Close takes the program off the interface. It may be called again.
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

// explain says what to do about an error of opening.
func explain(name string, err error) error {
	say := func(why string) error { return fmt.Errorf("%s: %w: %s", name, err, why) }
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return say("programs of eBPF need CAP_BPF and CAP_NET_ADMIN: run as root")
	case errors.Is(err, ebpf.ErrNotSupported):
		return say("programs at tcx take Linux 6.6 or later")
	}
	return fmt.Errorf("%s: %w", name, err)
}
