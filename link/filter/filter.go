//go:build linux

// Package filter translates match rules to eBPF instructions: the first part of a program that the
// kernel runs for each frame arriving at an interface.
package filter

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf/asm"

	"loam/link/match"
	"loam/wire"
)

// The program implements match.Any, and is tested against it:
//
//	r6 = context, r2 = first byte of the frame, r3 = end of the frame
//	no Ethernet header: pass; r5 = EtherType
//	for each rule, every field that is set:
//	    no match: continue with the next rule
//	    take
//	pass: the kernel processes the frame as usual
//	take: the instructions of the caller
//
// A hook behind the driver (TC) may receive a frame in pieces. The program then first makes the
// front of the frame contiguous.
//
// r2 and r3 never change; r4, r7 and r8 are scratch registers. Fields are compared in network byte
// order, except for ports, which are ranges. Before each read, the kernel's verifier requires a
// check that the bytes lie inside the frame: see within.

// Context is the register that holds the program's context when the caller's instructions begin.
const Context = asm.R6

// Hook is a place in the kernel where programs run.
type Hook struct {
	data, dataEnd int16 // offsets of the pointers to the data in the context
	pass          int32 // verdict that leaves the frame to the kernel
	pieces        bool
}

// The hooks. Their contexts are struct xdp_md and struct __sk_buff of linux/bpf.h.
var (
	XDP = Hook{data: 0, dataEnd: 4, pass: 2}
	TC  = Hook{data: 76, dataEnd: 80, pass: -1, pieces: true} // the verdict is TCX_NEXT
)

// Front is the number of bytes that are made contiguous if a frame arrives in pieces. It is more
// than the headers that any rule reads.
const Front = 192

// Registers that the instructions use, and labels that they jump to.
const (
	context  = Context
	data     = asm.R2
	dataEnd  = asm.R3
	kind     = asm.R5 // EtherType of the frame, in network byte order
	bound    = asm.R4
	field    = asm.R7
	segment  = asm.R8 // address of the transport header
	passName = "pass"
	takeName = "take"
)

// Offsets in the headers after the Ethernet header.
const (
	ip                                    = wire.EthernetLen
	ipv4Frag, ipv4Proto, ipv4Src, ipv4Dst = ip + 6, ip + 9, ip + 12, ip + 16
	ipv6Next, ipv6Src, ipv6Dst            = ip + 6, ip + 8, ip + 24
	dstPort                               = 2
	echoID                                = 4
	fragmentOffset                        = 0x1fff
)

// maxRules is the largest number of rules of a program. It keeps jumps within the range of a jump instruction (16
// bits).
const maxRules = 256

// assembler collects the instructions of a program.
type assembler struct {
	hook  Hook
	code  asm.Instructions
	label string // label that the next instruction gets
}

// add appends an instruction and gives it the pending label, if any.
func (a *assembler) add(in asm.Instruction) {
	if a.label != "" {
		in = in.WithSymbol(a.label)
		a.label = ""
	}
	a.code = append(a.code, in)
}

// Assemble returns the program for a hook, which is the place in the kernel where it runs. take are the instructions
// that run for a frame that matches; they must end the program. It returns an error if there are more than 256 rules.
func Assemble(hook Hook, rules []match.Rule, take asm.Instructions) (asm.Instructions, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("%d rules are more than %d", len(rules), maxRules)
	}
	// The verifier rejects unreachable code.
	a := &assembler{hook: hook}
	a.add(asm.Mov.Reg(context, asm.R1))
	all := len(rules) == 0 || slices.Contains(rules, match.Rule{})
	if rules = slices.DeleteFunc(slices.Clone(rules), impossible); all {
		return append(a.code, take...), nil
	} else if len(rules) == 0 {
		return append(a.code, asm.Mov.Imm(asm.R0, hook.pass), asm.Return()), nil
	}
	if hook.pieces {
		a.join()
	}
	a.bounds()
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
	a.add(asm.Mov.Imm(asm.R0, hook.pass))
	a.add(asm.Return())
	return a.code, nil
}

// bounds loads the start and the end of the frame.
func (a *assembler) bounds() {
	a.add(asm.LoadMem(data, context, a.hook.data, asm.Word))
	a.add(asm.LoadMem(dataEnd, context, a.hook.dataEnd, asm.Word))
}

// join makes the front of the frame contiguous if memory allows.
func (a *assembler) join() {
	const joined = "joined"
	a.add(asm.LoadMem(segment, context, 0, asm.Word)) // this loads the length of the frame
	a.add(asm.JLE.Imm(segment, Front, "short"))
	a.add(asm.Mov.Imm(segment, Front))
	a.label = "short"
	a.bounds()
	a.add(asm.Sub.Reg(dataEnd, data))
	a.add(asm.JGE.Reg(dataEnd, segment, joined))
	a.add(asm.Mov.Reg(asm.R1, context))
	a.add(asm.Mov.Reg(asm.R2, segment))
	a.add(asm.FnSkbPullData.Call())
	a.label = joined
}

// impossible reports whether no frame can match r, because r requires both IPv4 and IPv6, or an
// ICMP message of another protocol.
func impossible(r match.Rule) bool {
	four, six := of(r.Remote, 4) || of(r.Local, 4), of(r.Remote, 6) || of(r.Local, 6)
	if r.ICMP.Kind != match.AnyICMP {
		four, six = four || r.Protocol != wire.ProtoICMPv6, six || r.Protocol != wire.ProtoICMP
	}
	return four && six
}

func ruleName(i int) string { return fmt.Sprintf("rule%d", i) }

// within jumps to a label, the parameter otherwise, unless the n bytes from base on lie
// inside the frame.
func (a *assembler) within(base asm.Register, n int32, otherwise string) {
	a.add(asm.Mov.Reg(bound, base))
	a.add(asm.Add.Imm(bound, n))
	a.add(asm.JGT.Reg(bound, dataEnd, otherwise))
}

// rule jumps to the label take if the frame matches r, and to the label next otherwise.
func (a *assembler) rule(r *match.Rule, next string) {
	a.add(asm.Mov.Imm(field, 0)) // a rule may have nothing to check, but its label needs an instruction
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
	if of(r.Remote, 6) || of(r.Local, 6) || r.ICMP.Kind != match.AnyICMP && r.Protocol == wire.ProtoICMPv6 {
		a.add(asm.Ja.Label(next))
		return
	}
	a.within(data, ip+wire.IPv4MinLen, next)
	a.protocol(r, ipv4Proto, next)
	a.prefix(r.Remote, ipv4Src, next)
	a.prefix(r.Local, ipv4Dst, next)
	if r.NamesTransport() {
		a.add(asm.LoadMem(field, data, ipv4Frag, asm.Half))
		a.add(asm.JSet.Imm(field, int32(swap16(fragmentOffset)), next))
		a.add(asm.LoadMem(segment, data, ip, asm.Byte))
		a.add(asm.And.Imm(segment, 15))
		a.add(asm.LSh.Imm(segment, 2))
		a.add(asm.JLT.Imm(segment, wire.IPv4MinLen, next))
		a.add(asm.Add.Reg(segment, data))
		a.add(asm.Add.Imm(segment, ip))
		a.ports(r, next)
		a.icmp(r, quotes4, next)
	}
	a.add(asm.Ja.Label(takeName))
}

func (a *assembler) ipv6(r *match.Rule, next string) {
	if of(r.Remote, 4) || of(r.Local, 4) || r.ICMP.Kind != match.AnyICMP && r.Protocol == wire.ProtoICMP {
		a.add(asm.Ja.Label(next))
		return
	}
	a.within(data, ip+wire.IPv6Len, next)
	a.protocol(r, ipv6Next, next)
	a.prefix(r.Remote, ipv6Src, next)
	a.prefix(r.Local, ipv6Dst, next)
	if r.NamesTransport() {
		a.add(asm.Mov.Reg(segment, data))
		a.add(asm.Add.Imm(segment, ip+wire.IPv6Len))
		a.ports(r, next)
		a.icmp(r, quotes6, next)
	}
	a.add(asm.Ja.Label(takeName))
}

// of reports whether p is a valid prefix of the given IP version, 4 or 6.
func of(p netip.Prefix, version int) bool {
	return p.IsValid() && p.Addr().Is4() == (version == 4)
}

// protocol compares the protocol. If the rule sets ports, the protocol must be TCP or UDP.
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

// prefix compares p with an address in the frame. The parameter at is the offset of the
// address.
func (a *assembler) prefix(p netip.Prefix, at int16, next string) { a.bits(data, p, at, next) }

// bits compares p with an address, four bytes at a time. The parameter at is the offset
// of the address from the register base.
func (a *assembler) bits(base asm.Register, p netip.Prefix, at int16, next string) {
	if !p.IsValid() {
		return
	}
	address := p.Masked().Addr().AsSlice()
	for left := p.Bits(); left > 0; left, at, address = left-32, at+4, address[4:] {
		a.add(asm.LoadMem(field, base, at, asm.Word))
		if left < 32 {
			var mask [4]byte
			binary.BigEndian.PutUint32(mask[:], ^uint32(0)<<(32-left))
			a.add(asm.And.Imm32(field, int32(binary.NativeEndian.Uint32(mask[:]))))
		}
		a.add(asm.JNE.Imm32(field, int32(binary.NativeEndian.Uint32(address)), next))
	}
}

// ports compares the destination port of the transport header.
func (a *assembler) ports(r *match.Rule, next string) {
	if r.Ports == (match.Ports{}) {
		return
	}
	a.within(segment, dstPort+2, next)
	a.inRange(dstPort, r.Ports, next)
}

// inRange compares ports with a port in the transport header. The parameter at is the
// offset of that port from the start of the header.
func (a *assembler) inRange(at int16, ports match.Ports, next string) {
	a.add(asm.LoadMem(field, segment, at, asm.Half))
	a.add(asm.HostTo(asm.BE, field, asm.Half))
	a.add(asm.JLT.Imm(field, int32(ports.First), next))
	a.add(asm.JGT.Imm(field, int32(ports.Last), next))
}

// quotes describes ICMP messages that quote a packet, for one version of IP.
type quotes struct {
	echo, reply int32 // types of the messages
	// The quoted IP header: offsets of fields, its length, and its first byte with a mask.
	proto, src   int16
	header       int32
	mask, first  int32
	protocol     wire.Protocol // protocol of the messages: ICMP or ICMPv6
	errorMessage func(a *assembler, next string)
}

var (
	quotes4 = quotes{
		echo: int32(wire.ICMPv4Echo), reply: int32(wire.ICMPv4EchoReply), proto: 9, src: 12, header: wire.IPv4MinLen,
		mask: 0xff, first: 0x45, protocol: wire.ProtoICMP, errorMessage: (*assembler).error4,
	}
	quotes6 = quotes{
		echo: int32(wire.ICMPv6Echo), reply: int32(wire.ICMPv6EchoReply), proto: 6, src: 8, header: wire.IPv6Len,
		mask: 0xf0, first: 0x60, protocol: wire.ProtoICMPv6, errorMessage: (*assembler).error6,
	}
)

// icmp compares the ICMP message at segment with the rule.
func (a *assembler) icmp(r *match.Rule, v quotes, next string) {
	if r.ICMP.Kind == match.AnyICMP {
		return
	}
	const icmpLen = 8
	a.within(segment, icmpLen, next)
	if r.ICMP.Kind == match.EchoReply {
		a.echo(v.reply, r.ICMP.ID, next)
		return
	}
	a.add(asm.LoadMem(field, segment, 0, asm.Byte))
	v.errorMessage(a, next)
	a.add(asm.Add.Imm(segment, icmpLen))
	a.within(segment, v.header+icmpLen, next)
	a.add(asm.LoadMem(field, segment, 0, asm.Byte))
	a.add(asm.And.Imm(field, v.mask))
	a.add(asm.JNE.Imm(field, v.first, next))
	a.add(asm.LoadMem(field, segment, v.proto, asm.Byte))
	a.add(asm.JNE.Imm(field, int32(r.ICMP.Quoted), next))
	a.bits(segment, r.Local, v.src, next)
	a.add(asm.Add.Imm(segment, v.header))
	if r.ICMP.Quoted == v.protocol {
		a.echo(v.echo, r.ICMP.ID, next)
		return
	}
	a.inRange(0, r.ICMP.Ports, next)
}

// echo compares the type and the identifier of the ICMP message at segment.
func (a *assembler) echo(kind int32, id uint16, next string) {
	a.add(asm.LoadMem(field, segment, 0, asm.Byte))
	a.add(asm.JNE.Imm(field, kind, next))
	a.add(asm.LoadMem(field, segment, echoID, asm.Half))
	a.add(asm.JNE.Imm(field, int32(swap16(id)), next))
}

// error4 and error6 continue if the type in field is an error, and jump to the label next
// otherwise.
func (a *assembler) error4(next string) {
	is := fmt.Sprintf("%serror%d", next, len(a.code))
	for _, kind := range match.Errors4 {
		a.add(asm.JEq.Imm(field, int32(kind), is))
	}
	a.add(asm.Ja.Label(next))
	a.label = is
}

func (a *assembler) error6(next string) {
	const informational = 128 // lowest ICMPv6 type that is not an error (RFC 4443 section 2.1)
	a.add(asm.JGE.Imm(field, informational, next))
}

// swap16 returns v as this machine reads it from two bytes in network byte order.
func swap16(v uint16) uint16 {
	return binary.NativeEndian.Uint16([]byte{byte(v >> 8), byte(v)})
}
