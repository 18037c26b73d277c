// Package hop measures the cost of passing packets from one protocol layer to the next in three ways:
// by a function call; by a channel that carries single packets, with a goroutine for each layer, which
// is the design of the paper that Loam is based on; and by a channel that carries batches, which is
// Loam's design.
//
// The layers do little: they parse the headers of a TCP segment of 1500 bytes and pass the rest up,
// without checksums, copies or state. So a figure is mostly the cost of the three hops of a packet, and
// of the wake-ups that they cause.
package hop

import (
	"net/netip"
	"time"

	"loam/wire"
)

// layer removes one header from a packet. It returns nil if the packet is not of its kind.
type layer func(packet []byte) []byte

var layers = []layer{link, network, transport, program}

func link(b []byte) []byte {
	h, rest, err := wire.ParseEthernet(b)
	if err != nil || h.Type != wire.TypeIPv4 {
		return nil
	}
	return rest
}

func network(b []byte) []byte {
	h, rest, err := wire.ParseIPv4(b)
	if err != nil || h.Protocol != wire.ProtoTCP || h.IsFragment() {
		return nil
	}
	return rest
}

func transport(b []byte) []byte {
	_, rest, err := wire.ParseTCP(b)
	if err != nil {
		return nil
	}
	return rest
}

func program(b []byte) []byte { return b }

// Shape is a way to connect the layers. Run passes n copies of packet through all layers and returns the number of
// payload bytes that came out at the top.
type Shape struct {
	Name  string
	Brief string // name of the shape for the legend of a plot
	// Batch is the number of packets that a channel carries at a time; 0 without channels.
	Batch int
	Run   func(packet []byte, n int) int
}

// Shapes returns the shapes to measure, from no channels to large batches.
func Shapes() []Shape {
	shapes := []Shape{
		{"a function call for each layer", "calls", 0, direct},
		{"single packets through a channel for each layer", "single packets", 1, perPacket},
		{"single packets through a channel for each layer, one in flight", "one packet at a time", 1, alone},
	}
	for _, size := range []int{2, 4, 8, 16, 32, 64, 128, 256} {
		shapes = append(shapes, Shape{"batches through a channel for each layer", "batches", size, func(packet []byte, n int) int {
			return batched(packet, n, size)
		}})
	}
	return shapes
}

func direct(packet []byte, n int) int {
	total := 0
	for range n {
		p := packet
		for _, l := range layers {
			p = l(p)
		}
		total += len(p)
	}
	return total
}

// depth is the capacity of a channel between two layers in packets.
const depth = 1024

// goroutines starts a goroutine for each layer except the top one, and connects them by channels of
// packets. The layer below sends and closes, and the layer above receives. A layer waits while its
// channel is full.
func goroutines() (bottom chan<- []byte, top <-chan []byte) {
	first := make(chan []byte, depth)
	in := first
	for _, l := range layers[:len(layers)-1] {
		out := make(chan []byte, depth)
		go func(in <-chan []byte) {
			defer close(out)
			for p := range in {
				out <- l(p)
			}
		}(in)
		in = out
	}
	return first, in
}

// perPacket sends packets through the layers, from the lowest to the highest, as fast as
// possible.
func perPacket(packet []byte, n int) int {
	bottom, top := goroutines()
	go func() {
		defer close(bottom)
		for range n {
			bottom <- packet
		}
	}()
	total := 0
	for p := range top {
		total += len(program(p))
	}
	return total
}

// alone sends a packet through the layers when the packet before has arrived, so that
// every hop wakes a goroutine.
func alone(packet []byte, n int) int {
	bottom, top := goroutines()
	defer close(bottom)
	total := 0
	for range n {
		bottom <- packet
		total += len(program(<-top))
	}
	return total
}

// batched is like perPacket, but each channel element is a slice of packets. The slices come from a free list and
// return to it.
func batched(packet []byte, n, size int) int {
	slots := max(1, depth/size)
	free := make(chan [][]byte, slots*(len(layers)+1))
	for range cap(free) {
		free <- make([][]byte, 0, size)
	}
	first := make(chan [][]byte, slots)
	in := first
	for _, l := range layers[:len(layers)-1] {
		out := make(chan [][]byte, slots)
		go func(in <-chan [][]byte) {
			defer close(out)
			for batch := range in {
				for i, p := range batch {
					batch[i] = l(p)
				}
				out <- batch
			}
		}(in)
		in = out
	}
	go func() {
		defer close(first)
		for n > 0 {
			batch := <-free
			for range min(n, size) {
				batch = append(batch, packet)
			}
			n -= len(batch)
			first <- batch
		}
	}()
	total := 0
	for batch := range in {
		for _, p := range batch {
			total += len(program(p))
		}
		free <- batch[:0]
	}
	return total
}

// Segment returns the frame that is passed through the layers.
func Segment() []byte {
	src, dst := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")
	eth := wire.Ethernet{Src: wire.MAC{2, 1}, Dst: wire.MAC{2, 2}, Type: wire.TypeIPv4}
	tcp := wire.TCP{SrcPort: 1, DstPort: 2, Flags: wire.ACK, Window: 1000}
	const mtu = 1500
	ip := wire.IPv4{TTL: 64, Protocol: wire.ProtoTCP, Src: src, Dst: dst, PayloadLen: mtu - wire.IPv4MinLen}
	b := make([]byte, eth.Len()+mtu)
	eth.Put(b)
	ip.Put(b[eth.Len():])
	tcp.Put(b[eth.Len()+ip.Len():])
	return b
}

// PayloadLen is the length in bytes of the payload of Segment.
const PayloadLen = 1500 - wire.IPv4MinLen - wire.TCPMinLen

// Measure passes packets through a shape for about the duration span, and returns the
// time per packet.
func Measure(s Shape, span time.Duration) time.Duration {
	packet := Segment()
	n := 1000
	for {
		start := time.Now()
		s.Run(packet, n)
		took := time.Since(start)
		if took >= span/2 {
			return took / time.Duration(n)
		}
		n *= 2
	}
}
