package subject

import (
	"net/netip"

	"loam/link"
	"loam/link/tap"
)

// StrangerNet contains the source addresses of floods. It is part of the link's prefix.
var StrangerNet = netip.MustParsePrefix("10.9.0.128/25")

// loamBound is Loam on a tap that frees the frames of a flood as soon as it has read them. No stack that reads a tap
// frame by frame can open connections faster during the flood.
type loamBound struct{ loam }

func (loamBound) Name() string { return LoamBound }

func (loamBound) Tap(name string, addr netip.Prefix) (Host, error) {
	device, err := tap.Open(tap.Config{Name: name})
	if err != nil {
		return nil, err
	}
	return newLoamHost(&deaf{device, []link.Queue{deafQueue{device.Queues()[0]}}}, addr)
}

// deaf is a tap that frees the frames of a flood. It cannot thin them out.
type deaf struct {
	link.Device
	queues []link.Queue
}

func (d *deaf) Queues() []link.Queue { return d.queues }

type deafQueue struct{ link.Queue }

// Recv implements link.Queue.
func (q deafQueue) Recv(fs []*link.Frame) (int, error) {
	for {
		n, err := q.Queue.Recv(fs)
		kept := fs[:0]
		for _, f := range fs[:n] {
			if flood(f.Bytes()) {
				f.Free()
			} else {
				kept = append(kept, f)
			}
		}
		if len(kept) > 0 || err != nil {
			return len(kept), err
		}
	}
}

// flood reports whether a frame has a stranger's source address.
func flood(b []byte) bool {
	source := 26 // offset of the source address of IPv4
	if len(b) > 13 && b[12] == 8 && b[13] == 6 {
		source = 28 // offset of the sender's address in ARP
	}
	return len(b) >= source+4 && StrangerNet.Contains(netip.AddrFrom4([4]byte(b[source:])))
}
