//go:build linux

package method

import (
	"time"

	"loam/link"
	"loam/link/afpacket"
)

// ringReceiver is the receiving half of the method ring: a ring of version 3.
type ringReceiver struct {
	cutter
	ring *afpacket.RxRing
}

// rxBlocks is how many blocks the ring has: it holds half a second of thin traffic.
const rxBlocks = 512

func listenRing(c Config) (Receiver, error) {
	c = c.WithDefaults()
	r, err := afpacket.OpenRx(afpacket.RxConfig{Interface: c.Interface, Promiscuous: c.Promiscuous, Offloads: true, Blocks: rxBlocks})
	if err != nil {
		return nil, err
	}
	return &ringReceiver{ring: r, cutter: cutter{rules: c.Match}}, nil
}

// Receive implements Receiver.
func (r *ringReceiver) Receive(timeout time.Duration, got func(frame []byte, at int64)) (count int, err error) {
	// A ring that is filled as fast as it is emptied would keep us here.
	const most = 1 << 14
	f, ok := r.ring.Next()
	if !ok && timeout > 0 {
		if err := r.ring.Wait(timeout); err != nil {
			return 0, err
		}
		f, ok = r.ring.Next()
	}
	for seen := 0; ok; f, ok = r.ring.Next() {
		o, ok := link.ParseOffload(f.Offload, len(f.Frame))
		if !ok || f.Wire > len(f.Frame) {
			o = link.Offload{}
		}
		count += r.deliver(f.Frame, o, f.At, got)
		if seen++; seen == most {
			break
		}
	}
	return count, nil
}

// Drops implements Receiver.
func (r *ringReceiver) Drops() uint64 { return r.ring.Drops() }

// Close implements Receiver.
func (r *ringReceiver) Close() error { return r.ring.Close() }
