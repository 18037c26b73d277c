//go:build linux

package tap

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"syscall"

	"loam/link"
	"loam/wire"
)

// Stray segments: TCP segments without a connection. A program of classic BPF cannot find them, because it cannot
// read memory of this process. Therefore a program of eBPF drops them. It reads the set of connections
// (link.Flows) from memory that it shares with this process (a map with BPF_F_MMAPABLE, Linux 5.5). The kernel
// runs it after the program of thin.go.
//
// Loading the program needs CAP_BPF, unlike the program of thin.go.

// sieve is the eBPF program that drops stray segments (of no connection), with its memory. Device.filters guards the fields, except for
// flows.
type sieve struct {
	flows    *link.Flows
	until    *atomic.Uint64 // time until which the program drops frames, by the clock of the function monotonic
	mask     *atomic.Uint64 // a stray frame is delivered if a random number has zeros in the bits of this mask
	table    int            // descriptor of the map
	program  int            // descriptor of the program
	attached bool
}

// Layout of the shared memory: the counters of flows, until and mask.
const (
	untilAt   = link.FlowWords * 4
	maskAt    = untilAt + 8
	tableSize = maskAt + 8
)

// newSieve creates the memory and loads the program.
func newSieve(kind uint32) (*sieve, error) {
	table, memory, err := newTable(tableSize)
	if err != nil {
		return nil, err
	}
	keys := link.FlowKeys{rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()}
	program, err := loadProgram(kind, strayProgram(table, keys))
	if err != nil {
		syscall.Munmap(memory)
		syscall.Close(table)
		return nil, err
	}
	s := &sieve{
		flows: link.NewFlows(wordsOf(memory), keys), until: uint64At(memory, untilAt), mask: uint64At(memory, maskAt),
		table: table, program: program,
	}
	// Shards use the set until they have removed the interface, which may be after close. until and mask are used
	// only while this sieve, and with it flows, is in use.
	runtime.AddCleanup(s.flows, func(memory []byte) { syscall.Munmap(memory) }, memory)
	return s, nil
}

// close closes the descriptors. The memory remains as long as flows is in use.
func (s *sieve) close() {
	syscall.Close(s.program)
	syscall.Close(s.table)
}

// set attaches the program to the interface of a descriptor and makes it drop all but one in 1<<shift of the stray
// segments.
func (s *sieve) set(fd int, shift uint8) error {
	s.mask.Store(1<<min(shift, 31) - 1)
	s.until.Store(uint64(monotonic() + int64(link.StrayLife)))
	if s.attached {
		return nil
	}
	err := setFilter(fd, s.program)
	s.attached = err == nil
	return err
}

// unset removes the program from the interface of a descriptor.
func (s *sieve) unset(fd int) error {
	if !s.attached {
		return nil
	}
	s.attached = false
	return setFilter(fd, -1)
}

// Buffers of the program, as offsets from the frame pointer. They hold the Ethernet header with the fixed part of
// the IPv4 header, and the first bytes of the TCP header. headers is chosen so that the addresses are aligned,
// which the kernel's verifier requires.
const (
	headers    = -50
	headersLen = wire.EthernetLen + wire.IPv4MinLen
	segment    = -64
	segmentLen = tcpFlagsAt + 1
	tcpFlagsAt = 13
)

// anyLength is a result of the program that is longer than any frame: all of it is delivered.
const anyLength = 1<<31 - 1

// strayProgram returns the BPF program that drops stray segments. Its hash of a flow agrees with link.FlowKeys.Bucket.
//
//	r6 = frame, r7 = counters, r8 = until and mask
//	pass if until is over
//	pass unless the frame is an IPv4 packet with a TCP segment, and no fragment
//	pass a SYN without ACK
//	r9 = hash of the flow; pass if its counter is not 0
//	pass if the masked bits of a random number are 0
//	drop
func strayProgram(table int, keys link.FlowKeys) []instruction {
	var p extended
	p.add(movReg, r6, r1, 0, 0)
	p.value(r7, table, 0)
	p.value(r8, table, untilAt)
	p.call(ktimeGetNS)
	p.add(load64, r1, r8, 0, 0)
	p.jump(ifAbove|register, r0, r1, 0, "pass")

	p.copyFrame(headers, headersLen, func() { p.add(movImm, r2, 0, 0, 0) })
	p.add(load16, r0, r10, headers+etherType, 0)
	p.jump(ifNot, r0, 0, network16(uint16(wire.TypeIPv4)), "pass")
	p.add(load16, r0, r10, headers+ipv4Frag, 0)
	p.jump(ifAny, r0, 0, network16(fragment), "pass")
	p.add(load8, r0, r10, headers+ipv4Proto, 0)
	p.jump(ifNot, r0, 0, int32(wire.ProtoTCP), "pass")
	p.copyFrame(segment, segmentLen, func() {
		p.add(load8, r2, r10, headers+wire.EthernetLen, 0)
		p.add(andImm, r2, 0, 0, 15)
		p.add(leftImm, r2, 0, 0, 2)
		p.jump(ifBelow, r2, 0, wire.IPv4MinLen, "pass")
		p.add(addImm, r2, 0, 0, wire.EthernetLen)
	})
	p.add(load8, r0, r10, segment+tcpFlagsAt, 0)
	p.add(andImm, r0, 0, 0, int32(wire.SYN|wire.ACK))
	p.jump(ifEqual, r0, 0, int32(wire.SYN), "pass")

	p.constant(r9, keys[0])
	for i, at := range []int16{headers + ipv4Source, headers + ipv4Source + 4, segment} {
		p.add(load32, r0, r10, at, 0)
		p.add(toBigEndian, r0, 0, 0, 32)
		p.constant(r1, keys[i+1])
		p.add(mulReg, r0, r1, 0, 0)
		p.add(addReg, r9, r0, 0, 0)
	}
	p.add(rightImm, r9, 0, 0, 64-link.FlowBits)
	p.add(movReg, r1, r9, 0, 0) // r1 = the position of the counter in its word
	p.add(andImm, r1, 0, 0, 3)
	p.add(leftImm, r1, 0, 0, 3)
	p.add(andImm, r9, 0, 0, 1<<link.FlowBits-4)
	p.add(addReg, r7, r9, 0, 0)
	p.add(load32, r0, r7, 0, 0)
	p.add(rightReg, r0, r1, 0, 0)
	p.jump(ifAny, r0, 0, 255, "pass")

	p.call(getPrandomU32)
	p.add(load64, r1, r8, maskAt-untilAt, 0)
	p.add(andReg, r0, r1, 0, 0)
	p.jump(ifEqual, r0, 0, 0, "pass")
	p.add(movImm, r0, 0, 0, drop)
	p.add(exit, 0, 0, 0, 0)
	p.label("pass")
	p.add(movImm, r0, 0, 0, anyLength)
	p.add(exit, 0, 0, 0, 0)
	return p.code
}
