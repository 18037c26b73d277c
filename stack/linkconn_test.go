package stack_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Link-layer sockets according to packet(7).

const ownType wire.EtherType = 0x88b5 // EtherType for experiments (IEEE 802 local experimental)

func mustLink(t testing.TB, s *stack.Stack, cooked bool, kind wire.EtherType) *stack.LinkConn {
	t.Helper()
	c, err := s.ListenLink(cooked, kind)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// frameOf returns a frame from a peer.
func frameOf(to wire.MAC, kind wire.EtherType, payload string) []byte {
	h := wire.Ethernet{Dst: to, Src: macB, Type: kind}
	b := make([]byte, wire.EthernetLen)
	h.Put(b)
	return append(b, payload...)
}

// nextFrame returns the next frame that the socket has received.
func nextFrame(t *testing.T, c *stack.LinkConn) ([]byte, stack.LinkFrame) {
	t.Helper()
	synctest.Wait()
	b := make([]byte, 70000)
	n, info, err := c.TryRead(b)
	if err != nil {
		t.Fatalf("nothing has come: %v", err)
	}
	return b[:n], info
}

// nextSent returns the next frame of type ownType that the stack has sent.
func nextSent(t *testing.T, w *peer) []byte {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, b := range w.frames {
		if wire.EtherType(binary.BigEndian.Uint16(b[12:])) == ownType {
			w.frames = w.frames[i+1:]
			return b
		}
	}
	t.Fatal("nothing was sent")
	return nil
}

func wantNoFrame(t *testing.T, sentence string, c *stack.LinkConn) {
	t.Helper()
	synctest.Wait()
	if n, _ := c.Waiting(); n != 0 {
		t.Errorf("%s: %d frames", sentence, n)
	}
}

func TestLinkConnHears(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		typed, all, cooked := mustLink(t, w.s, false, ownType), mustLink(t, w.s, false, stack.LinkAll), mustLink(t, w.s, true, ownType)
		for _, c := range []struct {
			to   wire.MAC
			kind stack.FrameKind
		}{
			{macA, stack.FrameToHost},
			{wire.Broadcast, stack.FrameToAll},
			{wire.MAC{1, 0, 0x5e, 0, 0, 9}, stack.FrameToGroup},
			{wire.MAC{2, 9, 9, 9, 9, 9}, stack.FrameToOther},
		} {
			frame := frameOf(c.to, ownType, "payload")
			w.send(frame)
			for _, conn := range []*stack.LinkConn{typed, all} {
				got, info := nextFrame(t, conn)
				if !bytes.Equal(got, frame) || info.Kind != c.kind || info.Type != ownType || info.From != macB || info.Header != wire.EthernetLen {
					t.Errorf("to %v: %x, %+v", c.to, got, info)
				}
			}
			if got, info := nextFrame(t, cooked); string(got) != "payload" || info.Kind != c.kind || info.Len != 7 {
				t.Errorf("to %v, without the header: %q, %+v", c.to, got, info)
			}
		}
		tagged := append(frameOf(macA, wire.TypeVLAN, "")[:12], 0x81, 0, 0, 7, 0x88, 0xb5, 'x')
		w.send(tagged)
		if got, _ := nextFrame(t, typed); !bytes.Equal(got, tagged) {
			t.Errorf("a tag is looked behind: %x", got)
		}
		w.send(frameOf(macA, 38, "LLC"))
		wantNoFrame(t, "a frame with a length is of another type", typed)
		for range 2 {
			nextFrame(t, all)
		}
	})
}

// Frames that the stack sends, including ARP, are only received by sockets bound to
// LinkAll.
func TestLinkConnHearsOutgoing(t *testing.T) {
	p := newPair(t, stack.Config{}, pipe.Config{})
	all, arp := mustLink(t, p.a, false, stack.LinkAll), mustLink(t, p.a, false, wire.TypeARP)
	deaf := mustLink(t, p.a, false, stack.LinkAll)
	deaf.IgnoreOutgoing(true)
	b := make([]byte, 2000)
	for err := error(nil); err == nil; { // skip the frames that the interface has sent before
		_, _, err = deaf.TryRead(b)
	}
	if _, err := p.a.Ping(t.Context(), addrB, 56); err != nil {
		t.Fatal(err)
	}
	var kinds []stack.FrameKind
	for {
		n, info, err := all.TryRead(b)
		if err != nil {
			break
		}
		if info.Type == wire.TypeIPv4 && n == wire.EthernetLen+wire.IPv4MinLen+wire.ICMPv4Len+56 {
			kinds = append(kinds, info.Kind)
		}
	}
	if len(kinds) != 2 || kinds[0] != stack.FrameOutgoing || kinds[1] != stack.FrameToHost {
		t.Errorf("the request and its answer are %v", kinds)
	}
	for _, c := range []*stack.LinkConn{arp, deaf} {
		for {
			_, info, err := c.TryRead(b)
			if err != nil {
				break
			}
			if info.Kind == stack.FrameOutgoing {
				t.Errorf("an outgoing frame of type %v", info.Type)
			}
		}
	}
}

func TestLinkConnSends(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		raw, cooked := mustLink(t, w.s, false, 0), mustLink(t, w.s, true, 0)
		other := mustLink(t, w.s, false, stack.LinkAll)
		frame := frameOf(macB, ownType, "by hand")
		if n, err := raw.TryWrite(frame, w.ifc, wire.MAC{}, 0); n != len(frame) || err != nil {
			t.Fatal(n, err)
		}
		if got := nextSent(t, w); !bytes.Equal(got, frame) {
			t.Errorf("sent: %x", got)
		}
		if _, info := nextFrame(t, other); info.Kind != stack.FrameOutgoing {
			t.Errorf("another socket hears it as %+v", info)
		}
		wantNoFrame(t, "of type 0 nothing is heard", raw)
		if _, err := cooked.TryWrite([]byte("x"), w.ifc, macB, ownType); err != nil {
			t.Fatal(err)
		}
		want := wire.Ethernet{Dst: macB, Src: macA, Type: ownType}
		if h, payload, err := wire.ParseEthernet(nextSent(t, w)); err != nil || h != want || string(payload) != "x" {
			t.Errorf("with a header of the stack's: %+v %q %v", h, payload, err)
		}
		for _, c := range []struct {
			c    *stack.LinkConn
			n    int
			on   *stack.Interface
			want error
		}{
			{raw, 60, nil, stack.ErrNoInterface},
			{raw, 13, w.ifc, stack.ErrInvalid},
			{raw, 1500 + 14 + 4, w.ifc, nil}, // the longest frame with a VLAN tag
			{raw, 1500 + 14 + 5, w.ifc, stack.ErrMessageTooLong},
			{cooked, 1500, w.ifc, nil},
			{cooked, 1501, w.ifc, stack.ErrMessageTooLong},
		} {
			if _, err := c.c.TryWrite(make([]byte, c.n), c.on, macB, ownType); !errors.Is(err, c.want) {
				t.Errorf("%d bytes: %v, want %v", c.n, err, c.want)
			}
		}
	})
}

// Frames on the loopback interface have a header of zeros, as on Linux, and are received
// twice.
func TestLinkConnOnLoopback(t *testing.T) {
	p := newPair(t, stack.Config{}, pipe.Config{})
	c := mustLink(t, p.a, false, 0)
	c.Bind(p.a.Interfaces()[0], stack.LinkAll)
	if _, err := p.a.Ping(t.Context(), netip.MustParseAddr("127.0.0.1"), 56); err != nil {
		t.Fatal(err)
	}
	header := append(make([]byte, 12), 8, 0)
	seen := 0
	for b := make([]byte, 2000); ; seen++ {
		n, info, err := c.TryRead(b)
		if err != nil {
			break
		}
		if !bytes.HasPrefix(b[:n], header) || info.Interface != 1 {
			t.Errorf("%x, %+v", b[:n], info)
		}
	}
	if seen != 4 {
		t.Errorf("a request and an answer are %d frames, want 4", seen)
	}
}

func TestLinkConnFilterAndRoom(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustLink(t, w.s, false, ownType)
		c.SetFilter(func(frame []byte) uint32 {
			if bytes.HasSuffix(frame, []byte("no")) {
				return 0
			}
			return 16
		})
		w.send(frameOf(macA, ownType, "no"))
		w.send(frameOf(macA, ownType, "yes, indeed"))
		if got, info := nextFrame(t, c); string(got[14:]) != "ye" || info.Len != 16 || info.WireLen != 14+11 {
			t.Errorf("cut to 16 bytes: %q, %+v", got, info)
		}
		c.SetFilter(nil)
		c.SetReceiveBuffer(1)
		for range 3 { // the first frame is accepted whatever the limit
			w.send(frameOf(macA, ownType, "much"))
		}
		synctest.Wait()
		if frames, dropped := c.TakeStats(); frames != 4 || dropped != 2 {
			t.Errorf("%d frames, %d dropped", frames, dropped)
		}
		if frames, dropped := c.TakeStats(); frames != 0 || dropped != 0 {
			t.Errorf("again: %d frames, %d dropped", frames, dropped)
		}
		must(t, c.Close())
		if _, _, err := c.TryRead(nil); !errors.Is(err, stack.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		w.send(frameOf(macA, ownType, "late"))
	})
}
