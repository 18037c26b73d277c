//go:build linux

// Package filter makes instructions of eBPF of match rules: the front of a program
// that the kernel runs for each frame which comes to an interface.
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

// The program does what match.Any does, against which it is tested:
//
//	r6 = context, r2 = first byte of the frame, r3 = behind its last
//	no Ethernet header: pass; r5 = type
//	for each rule, every field that is set:
//	    agrees not: on to the next rule
//	    take
//	pass: the kernel gets it, as if we were not there
//	take: what the caller has in mind
//
// A hook behind the driver (TC) may be given a frame in pieces: its front is put
// together first.
//
// r2 and r3 stay as they are; r4, r7 and r8 are for looking at fields. Numbers in
// frames are compared as they stand, in network order, but for ports, which are
// ranges. The verifier of the kernel wants to see that each byte lies inside of
// the frame before it is read: see within.

// Context holds the context of the program where the instructions of take begin.
const Context = asm.R6

// Hook is a place of the kernel that runs programs.
type Hook struct {
	data, dataEnd int16 // offsets in its context
	pass          int32 // verdict: as if we were not there
	pieces        bool
}

// Hooks: struct xdp_md and struct __sk_buff of linux/bpf.h.
var (
	XDP = Hook{data: 0, dataEnd: 4, pass: 2}
	TC  = Hook{data: 76, dataEnd: 80, pass: -1, pieces: true} // TCX_NEXT
)

// Front is how many bytes of a frame that comes in pieces are put together, if it
// has as many: more than the headers of any rule.
const Front = 192

// Registers.
const (
	context  = Context
	data     = asm.R2
	dataEnd  = asm.R3
	kind     = asm.R5 // EtherType, in network order
	bound    = asm.R4
	field    = asm.R7
	segment  = asm.R8 // the transport header
	passName = "pass"
	takeName = "take"
)

// Offsets in the headers behind the Ethernet header.
const (
	ip                                    = wire.EthernetLen
	ipv4Frag, ipv4Proto, ipv4Src, ipv4Dst = ip + 6, ip + 9, ip + 12, ip + 16
	ipv6Next, ipv6Src, ipv6Dst            = ip + 6, ip + 8, ip + 24
	dstPort                               = 2
	echoID                                = 4
	fragmentOffset                        = 0x1fff
)

// maxRules keeps the jumps of the program within reach.
const maxRules = 256

// assembler writes the program.
type assembler struct {
	hook  Hook
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

// Assemble makes the program. take are the instructions for a frame that agrees;
// they end the program.
func Assemble(hook Hook, rules []match.Rule, take asm.Instructions) (asm.Instructions, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("%d rules are more than %d", len(rules), maxRules)
	}
	// The verifier refuses code that nobody reaches.
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

// bounds looks where the frame is.
func (a *assembler) bounds() {
	a.add(asm.LoadMem(data, context, a.hook.data, asm.Word))
	a.add(asm.LoadMem(dataEnd, context, a.hook.dataEnd, asm.Word))
}

// join has the front of the frame in one piece, as far as there is memory for that.
func (a *assembler) join() {
	const joined = "joined"
	a.add(asm.LoadMem(segment, context, 0, asm.Word)) // length of the frame
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

// impossible reports whether no frame agrees with r, since it asks for both
// versions of IP, or for a message of what is not ICMP.
func impossible(r match.Rule) bool {
	four, six := of(r.Remote, 4) || of(r.Local, 4), of(r.Remote, 6) || of(r.Local, 6)
	if r.ICMP.Kind != match.AnyICMP {
		four, six = four || r.Protocol != wire.ProtoICMPv6, six || r.Protocol != wire.ProtoICMP
	}
	return four && six
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

// prefix compares the first bits of the address at an offset in the frame.
func (a *assembler) prefix(p netip.Prefix, at int16, next string) { a.bits(data, p, at, next) }

// bits does so at an offset from base, four bytes at a time.
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

// ports compares the destination port of the header at segment.
func (a *assembler) ports(r *match.Rule, next string) {
	if r.Ports == (match.Ports{}) {
		return
	}
	a.within(segment, dstPort+2, next)
	a.inRange(dstPort, r.Ports, next)
}

// inRange compares the port at an offset from segment.
func (a *assembler) inRange(at int16, ports match.Ports, next string) {
	a.add(asm.LoadMem(field, segment, at, asm.Half))
	a.add(asm.HostTo(asm.BE, field, asm.Half))
	a.add(asm.JLT.Imm(field, int32(ports.First), next))
	a.add(asm.JGT.Imm(field, int32(ports.Last), next))
}

// quotes is what messages of ICMP that quote a packet look like, in a version of IP.
type quotes struct {
	echo, reply int32 // types
	// Offsets in a header of IP, its length and its first byte with a mask.
	proto, src   int16
	header       int32
	mask, first  int32
	protocol     wire.Protocol // of ICMP
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

// icmp compares what a rule says of the message of ICMP at segment.
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

// echo compares type and identifier of the message at segment.
func (a *assembler) echo(kind int32, id uint16, next string) {
	a.add(asm.LoadMem(field, segment, 0, asm.Byte))
	a.add(asm.JNE.Imm(field, kind, next))
	a.add(asm.LoadMem(field, segment, echoID, asm.Half))
	a.add(asm.JNE.Imm(field, int32(swap16(id)), next))
}

// error4 and error6 go on if the type in field is that of an error.
func (a *assembler) error4(next string) {
	is := fmt.Sprintf("%serror%d", next, len(a.code))
	for _, kind := range match.Errors4 {
		a.add(asm.JEq.Imm(field, int32(kind), is))
	}
	a.add(asm.Ja.Label(next))
	a.label = is
}

func (a *assembler) error6(next string) {
	const informational = 128 // RFC 4443 section 2.1
	a.add(asm.JGE.Imm(field, informational, next))
}

// swap16 is v as two bytes in network order are read on this machine.
func swap16(v uint16) uint16 {
	return binary.NativeEndian.Uint16([]byte{byte(v >> 8), byte(v)})
}
