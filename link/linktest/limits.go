package linktest

import (
	"sync"
	"testing"

	"loam/link"
	"loam/wire"
)

// A frame that the device cannot carry is taken, freed and counted. The other frames of the batch
// are delivered.
func testRefuses(t *testing.T, p *pair) {
	for _, d := range p.directions() {
		f := newFlow(d[0], d[1], 0)
		info := d[0].Info()
		bad := refused(info)
		before := d[0].Stats()
		for i, b := range bad {
			batch := []*link.Frame{Plain(f.medium, 100, uint32(2*i)), b, Plain(f.medium, 100, uint32(2*i+1))}
			var sender sync.WaitGroup
			sender.Go(func() {
				if _, err := push(f.from, batch); err != nil {
					t.Errorf("Send: %v", err)
				}
			})
			for n := 0; n < 2; {
				for _, frame := range f.recv(t) {
					checkPlain(t, f.medium, frame, 100, uint32(2*i+n))
					n++
				}
			}
			sender.Wait()
		}
		if got := d[0].Stats().TxErrors - before.TxErrors; got != uint64(len(bad)) {
			t.Errorf("TxErrors went up by %d, want %d", got, len(bad))
		}
	}
}

// refused returns one frame of each kind that a device with this Info cannot carry.
func refused(info link.Info) []*link.Frame {
	runt := max(1, info.Medium.HeaderLen()) - 1
	bad := []*link.Frame{link.NewFrame(runt)}
	if n := info.MaxLen() + 1; n <= link.MaxFrame {
		bad = append(bad, Plain(info.Medium, n, 0))
	}
	alien := Plain(info.Medium, 100, 0)
	alien.GSO = 99
	bad = append(bad, alien)
	for _, transport := range unfinished(info) {
		if f := Unfinished(info.Medium, transport); !info.Carries(f) {
			bad = append(bad, f)
		} else {
			f.Free()
		}
	}
	if info.MTU < 20_000 && info.Offloads.Has(link.OffloadChecksum|link.OffloadTSO4) {
		long := Transport{Protocol: wire.ProtoTCP, Payload: 40_000, GSOSize: info.MTU - 40 + 1}
		bad = append(bad, Unfinished(info.Medium, long))
	}
	return bad
}

// Without room, Send takes fewer frames instead of blocking. Room is signalled when the frames have
// been received. No frame is lost or reordered.
func testShort(t *testing.T, p *pair) {
	for _, d := range p.directions() {
		f := newFlow(d[0], d[1], 0)
		length := d[0].Info().MaxLen()
		sent, arrived := 0, 0
		for range 3 {
			for full := false; !full; full = len(f.out) > 0 {
				for len(f.out) < link.BatchSize {
					f.out = append(f.out, Plain(f.medium, length, uint32(sent+len(f.out))))
				}
				before := f.inFlight
				f.send(t)
				sent += f.inFlight - before
			}
			for f.inFlight > 0 {
				for _, frame := range f.recv(t) {
					checkPlain(t, f.medium, frame, length, uint32(arrived))
					arrived++
				}
			}
			wait(t, f.from)
		}
		link.FreeAll(f.out)
	}
}

// The counters of both ends agree with the frames sent.
func testStats(t *testing.T, p *pair) {
	for _, d := range p.directions() {
		f := newFlow(d[0], d[1], 0)
		from, to := d[0].Stats(), d[1].Stats()
		var frames, bytes uint64
		f.exchange(t, 200, 8,
			func(i int) *link.Frame {
				frames, bytes = frames+1, bytes+uint64(100+i)
				return Plain(f.medium, 100+i, uint32(i))
			},
			func(i int, frame *link.Frame) { frame.Free() })
		got := d[0].Stats()
		if got.TxFrames-from.TxFrames != frames || got.TxBytes-from.TxBytes != bytes {
			t.Errorf("sender counts %d frames, %d bytes; want %d, %d", got.TxFrames-from.TxFrames, got.TxBytes-from.TxBytes, frames, bytes)
		}
		got = d[1].Stats()
		if got.RxFrames-to.RxFrames != frames || got.RxBytes-to.RxBytes != bytes {
			t.Errorf("receiver counts %d frames, %d bytes; want %d, %d", got.RxFrames-to.RxFrames, got.RxBytes-to.RxBytes, frames, bytes)
		}
	}
}
