//go:build linux

package method

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/link/afpacket"
	"loam/stack"
	"loam/wire"
)

// loamSender is the method loam: a UDP socket of Loam's own stack. The interface already belongs to the Linux kernel,
// and Loam's stack must not answer ARP or other traffic meant for the kernel. So the stack runs on a device without
// link-layer addresses (steered).
type loamSender struct {
	counters
	stack *stack.Stack
	conn  *stack.UDPConn
	dev   *steered
	slot  []byte
}

// openLoam opens the method loam. Source and Destination must be IPv4 addresses.
func openLoam(c Config) (Sender, error) {
	c = c.WithDefaults()
	if !c.Destination.Addr().Is4() || !c.Source.Addr().Is4() {
		return nil, errors.New("loam: this method sends by IPv4 only, and needs a source address")
	}
	dev, err := steer(c)
	if err != nil {
		return nil, err
	}
	s := &loamSender{stack: stack.New(stack.Config{Shards: 1}), dev: dev, slot: make([]byte, c.Size)}
	if err := s.connect(c); err != nil {
		s.Close()
		return nil, fmt.Errorf("loam: %w", err)
	}
	return s, nil
}

// connect attaches the device to the stack, with a default route through it, and opens a connected UDP socket.
func (s *loamSender) connect(c Config) (err error) {
	const name = "gen"
	if _, err = s.stack.Attach(s.dev, stack.InterfaceConfig{Name: name, NoIPv6: true}); err != nil {
		s.dev.Close()
		return err
	}
	if err = s.stack.AddAddress(name, netip.PrefixFrom(c.Source.Addr(), 32)); err != nil {
		return err
	}
	if err = s.stack.AddRoute(stack.Route{Dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Interface: name}); err != nil {
		return err
	}
	if s.conn, err = s.stack.ListenUDP(c.Source, stack.UDPOptions{}); err != nil {
		return err
	}
	return s.conn.Connect(c.Destination)
}

// Layer implements Sender.
func (s *loamSender) Layer() Layer { return Payload }

// Send implements Sender.
func (s *loamSender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	bytes := 0
	for sent < n {
		length := fill(s.slot)
		if length == 0 {
			break
		}
		if err = s.write(s.slot[:length]); err != nil {
			break
		}
		sent++
		bytes += length
	}
	s.took(sent, bytes, 0)
	s.left.Store(min(s.dev.sent(), s.handed.Load()))
	return sent, err
}

// write passes a datagram to the stack. If the stack does not accept it, write retries for the patience of the sender.
func (s *loamSender) write(b []byte) error {
	_, err := s.conn.TryWriteTo(b, netip.AddrPort{})
	if err != stack.ErrWouldBlock {
		return err
	}
	s.busy.Add(1)
	s.conn.SetWriteDeadline(time.Now().Add(s.patience()))
	if _, err = s.conn.Write(b); errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no datagram could leave for %v: %w", s.patience(), context.DeadlineExceeded)
	}
	return err
}

// Flush implements Sender.
func (s *loamSender) Flush(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Microsecond) {
		left := s.dev.sent()
		s.left.Store(min(left, s.handed.Load()))
		if left >= s.handed.Load() {
			return nil
		}
		if time.Now().After(deadline) {
			return ErrTimeout
		}
	}
}

// Close implements Sender.
func (s *loamSender) Close() error { return s.stack.Close() }

// steered makes an Ethernet device appear as a device for IP packets. It sends all packets to a single next hop, with a
// constant Ethernet header. It drops all frames that it receives.
type steered struct {
	link.Device
	queue  steeredQueue
	header [wire.EthernetLen]byte
}

// steeredQueue is the only queue of a steered device. whole is the number of packets that the device has accepted
// completely.
type steeredQueue struct {
	link.Queue
	d     *steered
	whole atomic.Uint64
}

// steer opens a packet socket device and prepares the Ethernet header for its packets.
func steer(c Config) (*steered, error) {
	dev, err := afpacket.Open(afpacket.Config{Interface: c.Interface, Ring: true, Bypass: !c.Qdisc})
	if err != nil {
		return nil, err
	}
	h := wire.Ethernet{Dst: c.NextHop, Src: c.SourceMAC, Type: wire.TypeIPv4}
	if h.Dst.IsZero() {
		h.Dst = wire.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	if h.Src.IsZero() {
		h.Src = dev.Info().MAC
	}
	d := &steered{Device: dev}
	h.Put(d.header[:])
	d.queue.Queue, d.queue.d = dev.Queues()[0], d
	return d, nil
}

// Info implements link.Device. It describes a device of IP packets without a link-layer address.
func (d *steered) Info() link.Info {
	i := d.Device.Info()
	i.Medium, i.MAC = link.IP, wire.MAC{}
	return i
}

// Queues implements link.Device.
func (d *steered) Queues() []link.Queue { return []link.Queue{&d.queue} }

// sent returns the number of packets that the device has accepted completely. A fragmented packet counts after its last
// fragment.
func (d *steered) sent() uint64 { return d.queue.whole.Load() }

// Recv drops every received frame. It returns only on an error.
func (q *steeredQueue) Recv(fs []*link.Frame) (int, error) {
	for {
		n, err := q.Queue.Recv(fs)
		link.FreeAll(fs[:n])
		if err != nil {
			return 0, err
		}
	}
}

// Send prepends the Ethernet header to each packet.
func (q *steeredQueue) Send(fs []*link.Frame) (int, error) {
	whole := 0
	for _, f := range fs {
		whole += last(f)
		copy(f.Prepend(wire.EthernetLen), q.d.header[:])
	}
	n, err := q.Queue.Send(fs)
	for _, f := range fs[n:] {
		f.TrimFront(wire.EthernetLen)
		whole -= last(f)
	}
	q.whole.Add(uint64(whole))
	return n, err
}

// last returns 1 if f is an unfragmented IPv4 packet or the last fragment of a packet, otherwise 0.
func last(f *link.Frame) int {
	const flagsAt, moreFragments = 6, 0x20 // RFC 791 section 3.1
	if b := f.Bytes(); len(b) > flagsAt && b[flagsAt]&moreFragments != 0 {
		return 0
	}
	return 1
}
