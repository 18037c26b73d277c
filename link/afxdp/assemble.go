//go:build linux

package afxdp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf/asm"

	"loam/link/match"
	"loam/wire"
)

// The program that steers frames: match rules as instructions of eBPF. It runs in
// the driver for every frame that the interface receives, and does what
// match.Any does, against which it is tested:
//
//	r6 = context, r2 = first byte of the frame, r3 = behind its last
//	no Ethernet header: pass; r5 = type
//	for each rule, every field that is set:
//	    agrees not: on to the next rule
//	    take
//	pass: the kernel gets it, as if we were not there
//	take: to the socket of the queue that it came to, or pass if there is none
//
// r2 and r3 stay as they are; r4, r7 and r8 are for looking at fields. Numbers in
// frames are compared as they stand, in network order, but for ports, which are
// ranges. The verifier of the kernel wants to see that each byte lies inside of
// the frame before it is read: see within.

// Registers.
const (
	context  = asm.R6
	data     = asm.R2
	dataEnd  = asm.R3
	kind     = asm.R5 // EtherType, in network order
	bound    = asm.R4
	field    = asm.R7
	segment  = asm.R8 // the transport header
	passName = "pass"
	takeName = "take"
)

// Offsets in struct xdp_md, and in the headers behind the Ethernet header.
const (
	mdData, mdDataEnd, mdQueue = 0, 4, 16

	ip                                    = wire.EthernetLen
	ipv4Frag, ipv4Proto, ipv4Src, ipv4Dst = ip + 6, ip + 9, ip + 12, ip + 16
	ipv6Next, ipv6Src, ipv6Dst            = ip + 6, ip + 8, ip + 24
	dstPort                               = 2
	xdpPass                               = 2
	fragmentOffset                        = 0x1fff
)

// maxRules keeps the jumps of the program within reach.
const maxRules = 256

// assembler writes the program.
type assembler struct {
	code  asm.Instructions
	label string // for the next instruction
}

// add appends an instruction, which has the label if one was set.
func (a *assembler) add(in asm.Instruction) {
	if a.label != "" {
		in = in.WithSymbol(a.label)
		a.label = ""
	}
	a.code = append(a.code, in)
}

// assemble makes the program. take are the instructions for a frame that agrees;
// they end the program.
func assemble(rules []match.Rule, take asm.Instructions) (asm.Instructions, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("%d rules are more than %d", len(rules), maxRules)
	}
	// The verifier refuses code that nobody reaches.
	a := &assembler{}
	a.add(asm.Mov.Reg(context, asm.R1))
	all := len(rules) == 0 || slices.Contains(rules, match.Rule{})
	if rules = slices.DeleteFunc(slices.Clone(rules), impossible); all {
		return append(a.code, take...), nil
	} else if len(rules) == 0 {
		return append(a.code, asm.Mov.Imm(asm.R0, xdpPass), asm.Return()), nil
	}
	a.add(asm.LoadMem(data, context, mdData, asm.Word))
	a.add(asm.LoadMem(dataEnd, context, mdDataEnd, asm.Word))
	a.within(data, ip, passName)
	a.add(asm.LoadMem(kind, data, ip-2, asm.Half))
	for i := range rules {
		a.label = ruleName(i)
		a.rule(&rules[i], ruleName(i+1))
	}
	a.label = ruleName(len(rules))
	a.add(asm.Ja.Label(passName))
	a.label = takeName
	for _, in := range take {
		a.add(in)
	}
	a.label = passName
	a.add(asm.Mov.Imm(asm.R0, xdpPass))
	a.add(asm.Return())
	return a.code, nil
}

// impossible reports whether no frame agrees with r, since it asks for both
// versions of IP.
func impossible(r match.Rule) bool {
	return r.Remote.IsValid() && r.Local.IsValid() && r.Remote.Addr().Is4() != r.Local.Addr().Is4()
}

func ruleName(i int) string { return fmt.Sprintf("rule%d", i) }

// within goes on only if n bytes from base on lie inside of the frame.
func (a *assembler) within(base asm.Register, n int32, otherwise string) {
	a.add(asm.Mov.Reg(bound, base))
	a.add(asm.Add.Imm(bound, n))
	a.add(asm.JGT.Reg(bound, dataEnd, otherwise))
}

// rule takes a frame that agrees and goes on to next with one that does not.
func (a *assembler) rule(r *match.Rule, next string) {
	a.add(asm.Mov.Imm(field, 0)) // a rule may have nothing to check, and its label needs a place
	if r.EtherType != 0 {
		a.add(asm.JNE.Imm(kind, int32(swap16(uint16(r.EtherType))), next))
	}
	if !r.NamesIP() {
		a.add(asm.Ja.Label(takeName))
		return
	}
	six := next + "six"
	a.add(asm.JNE.Imm(kind, int32(swap16(uint16(wire.TypeIPv4))), six))
	a.ipv4(r, next)
	a.label = six
	a.add(asm.JNE.Imm(kind, int32(swap16(uint16(wire.TypeIPv6))), next))
	a.ipv6(r, next)
}

func (a *assembler) ipv4(r *match.Rule, next string) {
	if of(r.Remote, 6) || of(r.Local, 6) {
		a.add(asm.Ja.Label(next))
		return
	}
	a.within(data, ip+wire.IPv4MinLen, next)
	a.protocol(r, ipv4Proto, next)
	a.prefix(r.Remote, ipv4Src, next)
	a.prefix(r.Local, ipv4Dst, next)
	if r.Ports != (match.Ports{}) {
		a.add(asm.LoadMem(field, data, ipv4Frag, asm.Half))
		a.add(asm.JSet.Imm(field, int32(swap16(fragmentOffset)), next))
		a.add(asm.LoadMem(segment, data, ip, asm.Byte))
		a.add(asm.And.Imm(segment, 15))
		a.add(asm.LSh.Imm(segment, 2))
		a.add(asm.JLT.Imm(segment, wire.IPv4MinLen, next))
		a.add(asm.Add.Reg(segment, data))
		a.add(asm.Add.Imm(segment, ip))
		a.ports(r, next)
	}
	a.add(asm.Ja.Label(takeName))
}

func (a *assembler) ipv6(r *match.Rule, next string) {
	if of(r.Remote, 4) || of(r.Local, 4) {
		a.add(asm.Ja.Label(next))
		return
	}
	a.within(data, ip+wire.IPv6Len, next)
	a.protocol(r, ipv6Next, next)
	a.prefix(r.Remote, ipv6Src, next)
	a.prefix(r.Local, ipv6Dst, next)
	if r.Ports != (match.Ports{}) {
		a.add(asm.Mov.Reg(segment, data))
		a.add(asm.Add.Imm(segment, ip+wire.IPv6Len))
		a.ports(r, next)
	}
	a.add(asm.Ja.Label(takeName))
}

// of reports whether p is a prefix of that version.
func of(p netip.Prefix, version int) bool {
	return p.IsValid() && p.Addr().Is4() == (version == 4)
}

// protocol compares the protocol, which has ports if the rule names some.
func (a *assembler) protocol(r *match.Rule, at int16, next string) {
	ports := r.Ports != match.Ports{}
	if r.Protocol == 0 && !ports {
		return
	}
	a.add(asm.LoadMem(field, data, at, asm.Byte))
	if r.Protocol != 0 {
		a.add(asm.JNE.Imm(field, int32(r.Protocol), next))
	}
	if ports {
		has := fmt.Sprintf("%sports%d", next, len(a.code))
		a.add(asm.JEq.Imm(field, int32(wire.ProtoTCP), has))
		a.add(asm.JNE.Imm(field, int32(wire.ProtoUDP), next))
		a.label = has
		a.add(asm.Mov.Imm(field, 0))
	}
}

// prefix compares the first bits of the address at an offset, four bytes at a
// time.
func (a *assembler) prefix(p netip.Prefix, at int16, next string) {
	if !p.IsValid() {
		return
	}
	address := p.Masked().Addr().AsSlice()
	for left := p.Bits(); left > 0; left, at, address = left-32, at+4, address[4:] {
		a.add(asm.LoadMem(field, data, at, asm.Word))
		if left < 32 {
			var mask [4]byte
			binary.BigEndian.PutUint32(mask[:], ^uint32(0)<<(32-left))
			a.add(asm.And.Imm32(field, int32(binary.NativeEndian.Uint32(mask[:]))))
		}
		a.add(asm.JNE.Imm32(field, int32(binary.NativeEndian.Uint32(address)), next))
	}
}

// ports compares the destination port of the header at segment.
func (a *assembler) ports(r *match.Rule, next string) {
	a.within(segment, dstPort+2, next)
	a.add(asm.LoadMem(field, segment, dstPort, asm.Half))
	a.add(asm.HostTo(asm.BE, field, asm.Half))
	a.add(asm.JLT.Imm(field, int32(r.Ports.First), next))
	a.add(asm.JGT.Imm(field, int32(r.Ports.Last), next))
}

// swap16 is v as two bytes in network order are read on this machine.
func swap16(v uint16) uint16 {
	return binary.NativeEndian.Uint16([]byte{byte(v >> 8), byte(v)})
}

// redirect passes the frame to the socket that the map holds for its queue; if
// there is none, to the kernel.
func redirect(sockets int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, sockets),
		asm.LoadMem(asm.R2, context, mdQueue, asm.Word),
		asm.Mov.Imm(asm.R3, xdpPass),
		asm.FnRedirectMap.Call(),
		asm.Return(),
	}
}
