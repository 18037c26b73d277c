//go:build linux

package tap

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"

	"loam/link"
	"loam/wire"
)

// The interface drops frames by a program of classic BPF (TUNATTACHFILTER of linux/if_tun.h): the
// kernel runs it for each frame before it queues the frame for the reader. No privilege is needed
// beyond the descriptor.

// filters are the programs by which the kernel drops frames before this process sees them.
type filters struct {
	mu      sync.Mutex           // guards the fields below
	program []syscall.SockFilter // the attached program; the kernel remembers its place in memory
	sieve   *sieve               // nil until Flows is called
	closed  bool
}

// Thin implements link.Thinner. A TUN interface has no filters.
//
// The kernel remembers the address of the filter program in the memory of this process, and loads the program from
// there for further descriptors of the interface. IFF_NOFILTER prevents that for a descriptor, and Close removes the
// filter.
func (d *Device) Thin(t link.Thinning) error {
	if t.Kinds&link.KindStray != 0 {
		if _, err := d.Flows(); err != nil {
			return err
		}
	}
	d.filters.mu.Lock()
	defer d.filters.mu.Unlock()
	if d.filters.closed {
		return link.ErrClosed
	}
	return d.thin(t)
}

// thin is like Thin, but without the checks at its beginning.
func (d *Device) thin(t link.Thinning) (err error) {
	failed := d.ends[0].file.Do(func(fd uintptr) {
		if err = d.filters.classic(int(fd), t); err == nil {
			err = d.filters.strays(int(fd), t)
		}
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("%s: filter: %w", d.info.Name, err)
	}
	return nil
}

// classic attaches or removes the filter program for all kinds of frames except KindStray.
func (f *filters) classic(fd int, t link.Thinning) error {
	if t.Kinds&^link.KindStray == 0 {
		if f.program == nil {
			return nil
		}
		f.program = nil
		return detachFilter(fd)
	}
	program := thinner(t)
	err := attachFilter(fd, program)
	if err == nil {
		f.program = program
	}
	return err
}

// strays attaches or removes the program for KindStray.
func (f *filters) strays(fd int, t link.Thinning) error {
	switch {
	case f.sieve == nil:
		return nil
	case t.Kinds&link.KindStray == 0:
		return f.sieve.unset(fd)
	}
	return f.sieve.set(fd, t.Shift)
}

// Flows implements link.FlowThinner. It needs CAP_BPF and Linux 5.8.
func (d *Device) Flows() (*link.Flows, error) {
	d.filters.mu.Lock()
	defer d.filters.mu.Unlock()
	switch {
	case d.filters.closed:
		return nil, link.ErrClosed
	case d.info.Medium != link.Ethernet:
		return nil, fmt.Errorf("%s: stray segments: a TUN interface has no filters", d.info.Name)
	case d.filters.sieve == nil:
		s, err := newSieve(progSocketFilter)
		if err != nil {
			return nil, fmt.Errorf("%s: stray segments: %w", d.info.Name, err)
		}
		d.filters.sieve = s
	}
	return d.filters.sieve.flows, nil
}

// end removes the programs when the device is closed.
func (d *Device) end() error {
	d.filters.mu.Lock()
	defer d.filters.mu.Unlock()
	if d.filters.closed {
		return nil
	}
	d.filters.closed = true
	if d.filters.program == nil && d.filters.sieve == nil {
		return nil
	}
	err := d.thin(link.Thinning{})
	if d.filters.sieve != nil {
		d.filters.sieve.close()
	}
	if errors.Is(err, syscall.EBADFD) {
		return nil // the interface has been removed, and the filters with it
	}
	return err
}

// Results of the program: the number of bytes of a frame to deliver.
const (
	pass = 1<<32 - 1
	drop = 0
)

// Offsets in an Ethernet frame.
const (
	etherType   = wire.EthernetLen - 2
	ipv4Frag    = wire.EthernetLen + 6
	ipv4Proto   = wire.EthernetLen + 9
	ipv4Source  = wire.EthernetLen + 12
	arpOp       = wire.EthernetLen + 6
	arpSender   = wire.EthernetLen + 14
	tcpFlags    = wire.EthernetLen + 13 // offset relative to register X, which contains the length of the IPv4 header
	icmpType    = wire.EthernetLen      // offset relative to register X, like tcpFlags
	udpPort     = wire.EthernetLen + 2  // offset relative to register X, like tcpFlags
	randomValue = 0xfffff000 + 56       // SKF_AD_OFF + SKF_AD_RANDOM
	fragment    = 0x3fff                // mask of the fragment offset and of the flag "more fragments"
)

// thinner returns the filter program for t. It agrees with link.KindOf, and with the port of the thinning.
//
//	find the kind; pass frames of other kinds
//	A = sender
//	known: for each known sender: if A is it, pass
//	A = a random number; pass if its low bits are 0
//	drop
func thinner(t link.Thinning) []syscall.SockFilter {
	var p assembler
	kind := func(k link.Kinds, label string) string { // label at which the program continues for frames of a kind
		if t.Kinds&k != 0 {
			return label
		}
		return "pass"
	}
	p.load(syscall.BPF_H|syscall.BPF_ABS, etherType)
	p.jump(syscall.BPF_JEQ, uint32(wire.TypeARP), kind(link.KindARP, "arp"), "")
	p.jump(syscall.BPF_JEQ, uint32(wire.TypeIPv4), "", "pass")
	p.load(syscall.BPF_H|syscall.BPF_ABS, ipv4Frag)
	p.jump(syscall.BPF_JSET, fragment, kind(link.KindFragment, "ip"), "")
	p.add(syscall.BPF_LDX|syscall.BPF_B|syscall.BPF_MSH, wire.EthernetLen)
	p.load(syscall.BPF_B|syscall.BPF_ABS, ipv4Proto)
	p.jump(syscall.BPF_JEQ, uint32(wire.ProtoTCP), kind(link.KindSYN, "tcp"), "")
	p.jump(syscall.BPF_JEQ, uint32(wire.ProtoUDP), kind(link.KindUDP, "udp"), "")
	p.jump(syscall.BPF_JEQ, uint32(wire.ProtoICMP), kind(link.KindEcho, "icmp"), "pass")
	p.at("udp")
	p.load(syscall.BPF_H|syscall.BPF_IND, udpPort)
	p.jump(syscall.BPF_JEQ, uint32(t.Port), "ip", "pass")
	p.at("icmp")
	p.load(syscall.BPF_B|syscall.BPF_IND, icmpType)
	p.jump(syscall.BPF_JEQ, uint32(wire.ICMPv4Echo), "ip", "pass")
	p.at("tcp")
	p.load(syscall.BPF_B|syscall.BPF_IND, tcpFlags)
	p.add(syscall.BPF_ALU|syscall.BPF_AND|syscall.BPF_K, uint32(wire.SYN|wire.ACK))
	p.jump(syscall.BPF_JEQ, uint32(wire.SYN), "ip", "pass")
	p.at("arp")
	p.load(syscall.BPF_H|syscall.BPF_ABS, arpOp)
	p.jump(syscall.BPF_JEQ, uint32(wire.ARPRequest), "", "pass")
	p.load(syscall.BPF_W|syscall.BPF_ABS, arpSender)
	p.jump(syscall.BPF_JA, 0, "known", "")
	p.at("ip")
	p.load(syscall.BPF_W|syscall.BPF_ABS, ipv4Source)
	p.at("known")
	for _, addr := range t.Known[:min(len(t.Known), link.MaxKnown)] {
		if addr.Is4() {
			p.jump(syscall.BPF_JEQ, word(addr), "pass", "")
		}
	}
	p.load(syscall.BPF_W|syscall.BPF_ABS, randomValue)
	p.jump(syscall.BPF_JSET, 1<<min(t.Shift, 31)-1, "", "pass")
	p.add(syscall.BPF_RET|syscall.BPF_K, drop)
	p.at("pass")
	p.add(syscall.BPF_RET|syscall.BPF_K, pass)
	return p.program()
}

func word(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// assembler builds a program of classic BPF (bpf(4) of FreeBSD). Jumps go forward, to labels.
type assembler struct {
	code   []syscall.SockFilter
	jumps  []jump
	labels map[string]int // index of the instruction behind a label
}

// jump is a jump whose targets are labels; an empty label is the next instruction.
type jump struct {
	index      int
	yes, other string
}

func (p *assembler) add(code uint16, k uint32) {
	p.code = append(p.code, syscall.SockFilter{Code: code, K: k})
}

func (p *assembler) load(mode uint16, k uint32) { p.add(syscall.BPF_LD|mode, k) }

func (p *assembler) jump(condition uint16, k uint32, yes, other string) {
	p.jumps = append(p.jumps, jump{len(p.code), yes, other})
	p.add(syscall.BPF_JMP|condition|syscall.BPF_K, k)
}

// at puts a label in front of the next instruction.
func (p *assembler) at(label string) {
	if p.labels == nil {
		p.labels = make(map[string]int)
	}
	p.labels[label] = len(p.code)
}

// program returns the instructions with all jumps resolved. The programs here are shorter than the
// range of a jump.
func (p *assembler) program() []syscall.SockFilter {
	for _, j := range p.jumps {
		in := &p.code[j.index]
		if in.Code == syscall.BPF_JMP|syscall.BPF_JA {
			in.K = uint32(p.distance(j.index, j.yes))
			continue
		}
		in.Jt, in.Jf = p.distance(j.index, j.yes), p.distance(j.index, j.other)
	}
	return p.code
}

// distance returns how many instructions a jump skips.
func (p *assembler) distance(from int, label string) uint8 {
	if label == "" {
		return 0
	}
	return uint8(p.labels[label] - from - 1)
}
