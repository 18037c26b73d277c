//go:build linux

package method

import (
	"errors"
	"time"

	"loam/gen/hwtime"
	"loam/link"
	"loam/link/afpacket"
)

// ringReceiver is the receiving half of the method ring: a receive ring of version 3.
type ringReceiver struct {
	cutter
	ring   *afpacket.RxRing
	stamps *hwtime.Stamps // nil: the kernel's receive times are used
}

// rxBlocks is the number of blocks in the ring. If traffic is sparse, they hold the frames of half a second.
const rxBlocks = 512

// listenRing opens a receiver for the method "ring" (PACKET_RX_RING of packet(7)).
func listenRing(c Config) (Receiver, error) {
	c = c.WithDefaults()
	stamps, err := deviceTime(c)
	if err != nil {
		return nil, err
	}
	r, err := afpacket.OpenRx(afpacket.RxConfig{
		Interface: c.Interface, Promiscuous: c.Promiscuous, Offloads: true, Blocks: rxBlocks, Hardware: c.DeviceTime,
	})
	if err != nil {
		return nil, errors.Join(err, closeStamps(stamps))
	}
	return &ringReceiver{ring: r, cutter: cutter{rules: c.Match}, stamps: stamps}, nil
}

// Receive implements Receiver.
func (r *ringReceiver) Receive(timeout time.Duration, got func(frame []byte, at int64)) (count int, err error) {
	// Bounds one call: if the ring is filled as fast as it is emptied, the call would otherwise never return.
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
		if f.Device && r.stamps != nil {
			f.At = r.stamps.System(f.At)
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
func (r *ringReceiver) Close() error { return errors.Join(r.ring.Close(), closeStamps(r.stamps)) }

// deviceTime enables the device's time stamps if c requests them. Otherwise it returns nil.
func deviceTime(c Config) (*hwtime.Stamps, error) {
	if !c.DeviceTime {
		return nil, nil
	}
	return hwtime.Open(c.Interface)
}

func closeStamps(s *hwtime.Stamps) error {
	if s == nil {
		return nil
	}
	return s.Close()
}
