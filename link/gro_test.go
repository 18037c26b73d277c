package link_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"loam/link"
	"loam/link/linktest"
	"loam/wire"
)

// tcpFlow makes consecutive segments of a flow.
type tcpFlow struct {
	medium link.Medium
	v6     bool
	port   uint16
	seq    uint32
	id     uint16
	ack    uint32
}

// change modifies the headers of a segment before its checksums are computed. ip and tcp begin with
// these headers.
type change func(ip, tcp []byte)

// next makes the next segment, with n bytes of payload.
func (c *tcpFlow) next(n int, flags wire.TCPFlags, changes ...change) *link.Frame {
	f := linktest.Unfinished(c.medium, linktest.Transport{Protocol: wire.ProtoTCP, IPv6: c.v6, Payload: n})
	ip := f.Bytes()[c.medium.HeaderLen():]
	tcp := f.Bytes()[f.CsumStart:]
	binary.BigEndian.PutUint16(tcp, c.port)
	binary.BigEndian.PutUint32(tcp[4:], c.seq)
	binary.BigEndian.PutUint32(tcp[8:], c.ack)
	tcp[13] = uint8(flags)
	if !c.v6 {
		binary.BigEndian.PutUint16(ip[4:], c.id)
	}
	for _, change := range changes {
		change(ip, tcp)
	}
	if !c.v6 {
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^wire.Sum(ip[:20], 0))
	}
	f.FinishChecksum()
	c.seq += uint32(n)
	c.id++
	return f
}

// pad extends a frame beyond its packet, with padding, as Ethernet adds it to short frames.
func pad(f *link.Frame) *link.Frame {
	n := f.Len()
	f.Resize(max(n, 60))
	clear(f.Bytes()[n:])
	return f
}

var media = []link.Medium{link.Ethernet, link.IP}

// Consecutive segments become one frame, with the metadata that Segment needs.
func TestCoalesce(t *testing.T) {
	for _, m := range media {
		for _, v6 := range []bool{false, true} {
			flow := tcpFlow{medium: m, v6: v6, port: 99, seq: 1<<32 - 5000, id: 65_530}
			var fs []*link.Frame
			for range 39 {
				fs = append(fs, flow.next(1000, wire.ACK))
			}
			fs = append(fs, flow.next(10, wire.ACK|wire.PSH))
			if n := link.Coalesce(m, fs); n != 1 {
				t.Fatalf("%d frames are left, want 1", n)
			}
			f := fs[0]
			ip := 20
			want := link.Offload{NeedsChecksum: true, ChecksumValid: true, GSO: link.GSOTCP4, GSOSize: 1000, CsumOffset: 16}
			if v6 {
				ip, want.GSO = 40, link.GSOTCP6
			}
			want.CsumStart = uint16(m.HeaderLen() + ip)
			want.HeaderLen = want.CsumStart + 20
			if f.Offload != want {
				t.Errorf("metadata %+v, want %+v", f.Offload, want)
			}
			if f.Len() != int(want.HeaderLen)+39_010 || !f.Admit(m) {
				t.Errorf("a frame of %d bytes that Admit refuses or is too short", f.Len())
			}
			if flags := wire.TCPFlags(f.Bytes()[want.CsumStart+13]); flags != wire.ACK|wire.PSH {
				t.Errorf("flags %v, want PSH of the last segment", flags)
			}
			f.Free()
		}
	}
}

// Every case is two or three segments that must not be merged.
func TestCoalesceSeparatesFlows(t *testing.T) {
	type segments = []*link.Frame
	for name, build := range map[string]func(c *tcpFlow) segments{
		"a gap": func(c *tcpFlow) segments {
			a := c.next(100, wire.ACK)
			c.seq++
			return segments{a, c.next(100, wire.ACK)}
		},
		"one twice": func(c *tcpFlow) segments {
			a := c.next(100, wire.ACK)
			c.seq -= 100
			return segments{a, c.next(100, wire.ACK)}
		},
		"another port": func(c *tcpFlow) segments {
			a := c.next(100, wire.ACK)
			c.port++
			return segments{a, c.next(100, wire.ACK)}
		},
		"another ACK": func(c *tcpFlow) segments {
			a := c.next(100, wire.ACK)
			c.ack++
			return segments{a, c.next(100, wire.ACK)}
		},
		"a longer one": func(c *tcpFlow) segments { return segments{c.next(100, wire.ACK), c.next(101, wire.ACK)} },
		"behind PSH":   func(c *tcpFlow) segments { return segments{c.next(100, wire.ACK|wire.PSH), c.next(100, wire.ACK)} },
		"behind FIN":   func(c *tcpFlow) segments { return segments{c.next(100, wire.ACK|wire.FIN), c.next(100, wire.ACK)} },
		"behind a shorter": func(c *tcpFlow) segments {
			return segments{c.next(100, wire.ACK), c.next(0, wire.ACK), c.next(100, wire.ACK)}
		},
		"SYN": func(c *tcpFlow) segments { return segments{c.next(100, wire.SYN), c.next(100, wire.SYN)} },
		"URG": func(c *tcpFlow) segments {
			return segments{c.next(100, wire.ACK|wire.URG), c.next(100, wire.ACK|wire.URG)}
		},
		"ACKs alone": func(c *tcpFlow) segments { return segments{c.next(0, wire.ACK), c.next(0, wire.ACK)} },
		"CWR on the second": func(c *tcpFlow) segments {
			return segments{c.next(100, wire.ACK), c.next(100, wire.ACK|wire.CWR)}
		},
		"ECE on one": func(c *tcpFlow) segments { return segments{c.next(100, wire.ACK|wire.ECE), c.next(100, wire.ACK)} },
		"another window": func(c *tcpFlow) segments {
			return segments{c.next(100, wire.ACK), c.next(100, wire.ACK, func(_, tcp []byte) { tcp[15]++ })}
		},
		"another TTL": func(c *tcpFlow) segments {
			return segments{c.next(100, wire.ACK), c.next(100, wire.ACK, func(ip, _ []byte) { ip[8]-- })}
		},
		"another TOS": func(c *tcpFlow) segments {
			return segments{c.next(100, wire.ACK), c.next(100, wire.ACK, func(ip, _ []byte) { ip[1] = 3 })}
		},
		"another source": func(c *tcpFlow) segments {
			b := c.next(100, wire.ACK)
			b.Bytes()[11]++
			c.seq -= 100
			return segments{c.next(100, wire.ACK), b}
		},
		"an identification that jumps": func(c *tcpFlow) segments {
			a := c.next(100, wire.ACK)
			c.id += 5
			return segments{a, c.next(100, wire.ACK)}
		},
		"the same identification without DF": func(c *tcpFlow) segments {
			clear := func(ip, _ []byte) { ip[6] = 0 }
			a := c.next(100, wire.ACK, clear)
			c.id--
			return segments{a, c.next(100, wire.ACK, clear)}
		},
		"a bad checksum": func(c *tcpFlow) segments {
			fs := segments{c.next(100, wire.ACK), c.next(100, wire.ACK)}
			fs[1].Bytes()[fs[1].Len()-1]++
			return fs
		},
		"a bad IP checksum": func(c *tcpFlow) segments {
			fs := segments{c.next(100, wire.ACK), c.next(100, wire.ACK)}
			fs[1].Bytes()[14+10]++
			return fs
		},
	} {
		c := &tcpFlow{port: 99}
		fs := build(c)
		if n := link.Coalesce(link.Ethernet, fs); n != len(fs) {
			t.Errorf("%s: %d frames are left of %d", name, n, len(fs))
			fs = fs[:n]
		}
		link.FreeAll(fs)
	}
}

// Many senders use the same identification for all packets with the don't-fragment flag. Their
// segments are merged too.
func TestCoalesceSameID(t *testing.T) {
	c := &tcpFlow{}
	var fs []*link.Frame
	for range 5 {
		c.id = 0
		fs = append(fs, c.next(500, wire.ACK))
	}
	if n := link.Coalesce(link.Ethernet, fs); n != 1 {
		t.Errorf("%d frames are left, want 1", n)
	}
	fs[0].Free()
}

// If only the first segment carries CWR, the metadata has ECN set.
func TestCoalesceCWR(t *testing.T) {
	c := &tcpFlow{}
	fs := []*link.Frame{c.next(500, wire.ACK|wire.CWR), c.next(500, wire.ACK), c.next(500, wire.ACK), c.next(500, wire.ACK|wire.CWR)}
	if n := link.Coalesce(link.Ethernet, fs); n != 2 || !fs[0].ECN || fs[1].ECN {
		t.Errorf("%d frames are left, ECN %v; want the first three merged and marked", n, fs[0].ECN)
	}
	link.FreeAll(fs[:2])
}

// A merged frame is no longer than the longest IP packet, and a batch may be longer than BatchSize.
func TestCoalesceLongBatch(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	c := &tcpFlow{}
	var fs []*link.Frame
	for range 3*link.BatchSize + 1 {
		fs = append(fs, c.next(1448, wire.ACK))
	}
	n := link.Coalesce(link.Ethernet, fs)
	total := 0
	for _, f := range fs[:n] {
		if f.Len() > 14+65535 {
			t.Errorf("a frame of %d bytes", f.Len())
		}
		total += f.Segments()
	}
	if total != 3*link.BatchSize+1 || n != 7 { // each batch makes frames of 45 and 19 segments; one segment is left
		t.Errorf("%d frames with %d segments", n, total)
	}
	link.FreeAll(fs[:n])
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

// key identifies a flow by its source port.
func key(m link.Medium, b []byte) uint16 {
	ip := b[m.HeaderLen():]
	if ip[0]>>4 == 6 {
		return binary.BigEndian.Uint16(ip[40:])
	}
	return binary.BigEndian.Uint16(ip[20:])
}

// content returns a copy of the packet in a frame, without padding.
func content(m link.Medium, b []byte) []byte {
	ip := b[m.HeaderLen():]
	n := int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 == 6 {
		n = 40 + int(binary.BigEndian.Uint16(ip[4:]))
	}
	return bytes.Clone(b[:m.HeaderLen()+n])
}

// randomBatch makes segments of a few flows, mostly consecutive.
func randomBatch(rng *rand.Rand, m link.Medium) []*link.Frame {
	var flows []*tcpFlow
	for i := range 1 + rng.IntN(4) {
		flows = append(flows, &tcpFlow{medium: m, v6: rng.IntN(2) == 0, port: uint16(1000 + 4*i), seq: rng.Uint32(), id: uint16(rng.Uint32())})
	}
	var fs []*link.Frame
	for range rng.IntN(3 * link.BatchSize / 2) {
		c := flows[rng.IntN(len(flows))]
		size, flags := 200, wire.ACK
		var changes []change
		switch rng.IntN(24) {
		case 0:
			size = rng.IntN(210)
		case 1:
			flags |= wire.TCPFlags(rng.IntN(256))
		case 2:
			c.seq += uint32(rng.IntN(3)) - 1
		case 3:
			// counts up: packets with a constant identification would be renumbered by Segment (TestCoalesceSameID)
			c.id += 1 + uint16(rng.IntN(3))
		case 4:
			c.ack++
		case 5:
			at := rng.IntN(20)
			changes = append(changes, func(_, tcp []byte) {
				if at < 12 || at > 13 {
					tcp[at] ^= 1
				}
			})
		case 6:
			changes = append(changes, func(ip, _ []byte) { ip[1] ^= 2 })
		}
		f := c.next(size, flags, changes...)
		if rng.IntN(30) == 0 {
			f.Bytes()[f.Len()-1] ^= 1 // simulates damage during transmission
		}
		if m == link.Ethernet {
			pad(f)
		}
		fs = append(fs, f)
	}
	return fs
}

// Segment restores exactly what Coalesce merged, in the order of each flow.
func TestCoalesceIsUndone(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	rng := rand.New(rand.NewPCG(3, 4))
	merged := 0
	for round := range 300 {
		m := media[round%2]
		fs := randomBatch(rng, m)
		want := map[uint16][][]byte{}
		for _, f := range fs {
			k := key(m, f.Bytes())
			want[k] = append(want[k], content(m, f.Bytes()))
		}
		n := link.Coalesce(m, fs)
		merged += len(fs) - n
		got := map[uint16][][]byte{}
		for _, f := range fs[:n] {
			k := key(m, f.Bytes())
			segments := []*link.Frame{f}
			if f.GSO != link.GSONone {
				segments = segment(t, m, f, 8)
			}
			for _, s := range segments {
				got[k] = append(got[k], content(m, s.Bytes()))
				s.Free()
			}
		}
		if err := compareFlows(got, want); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if merged < 3000 {
		t.Errorf("only %d segments were merged: the test tests nothing", merged)
	}
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

func compareFlows(got, want map[uint16][][]byte) error {
	for k := range want {
		if len(got[k]) != len(want[k]) {
			return fmt.Errorf("flow %d: %d segments, want %d", k, len(got[k]), len(want[k]))
		}
		for i := range want[k] {
			if !bytes.Equal(got[k][i], want[k][i]) {
				return fmt.Errorf("flow %d, segment %d:\n% x\nwant\n% x", k, i, got[k][i], want[k][i])
			}
		}
	}
	return nil
}

func TestCoalesceAllocates(t *testing.T) {
	fs := make([]*link.Frame, link.BatchSize)
	models := batchOf(len(fs))
	allocs(t, func() {
		copyAll(fs, models)
		link.FreeAll(fs[:link.Coalesce(link.Ethernet, fs)])
	})
}

// batchOf makes a batch of segments of one flow.
func batchOf(n int) (fs []*link.Frame) {
	c := &tcpFlow{}
	for range n {
		fs = append(fs, c.next(1448, wire.ACK))
	}
	return fs
}

func copyAll(fs, models []*link.Frame) {
	for i, model := range models {
		fs[i] = link.NewFrame(model.Len())
		copy(fs[i].Bytes(), model.Bytes())
		fs[i].Offload = model.Offload
	}
}

func BenchmarkCoalesce(b *testing.B) {
	for _, valid := range []bool{false, true} {
		b.Run(fmt.Sprintf("valid=%v", valid), func(b *testing.B) {
			models := batchOf(link.BatchSize)
			for _, f := range models {
				f.ChecksumValid = valid
			}
			fs := make([]*link.Frame, len(models))
			b.SetBytes(int64(len(models) * 1448))
			b.ReportAllocs()
			for b.Loop() {
				copyAll(fs, models)
				link.FreeAll(fs[:link.Coalesce(link.Ethernet, fs)])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/link.BatchSize, "ns/frame")
		})
	}
}

// FuzzCoalesce checks with arbitrary bytes, two frames of a common flow, that Segment restores what
// Coalesce merged.
func FuzzCoalesce(f *testing.F) {
	for _, m := range media {
		for _, v6 := range []bool{false, true} {
			c := &tcpFlow{medium: m, v6: v6}
			a, b := c.next(100, wire.ACK), c.next(50, wire.ACK|wire.PSH)
			f.Add(uint8(m), a.Bytes(), b.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, medium uint8, a, b []byte) {
		if len(a) > link.MaxFrame || len(b) > link.MaxFrame {
			return
		}
		m := link.Medium(medium & 1)
		var fs []*link.Frame
		for _, x := range [][]byte{a, b} {
			frame := link.NewFrame(len(x))
			copy(frame.Bytes(), x)
			frame.ChecksumValid = true // otherwise the fuzzer would hardly find two frames to merge
			fs = append(fs, frame)
		}
		n := link.Coalesce(m, fs)
		if n == 1 {
			dst := make([]*link.Frame, 4)
			cut, ok := link.Segment(m, fs[0], dst)
			if !ok || cut != 1 || fs[0].GSO != link.GSONone {
				t.Fatalf("a merged frame was not taken apart: %d, %v", cut, ok)
			}
			dst[0].Free()
		}
		link.FreeAll(fs[:n])
	})
}
