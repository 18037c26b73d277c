package sink

import (
	"bytes"
	"testing"
	"time"

	"loam/gen/frame"
	"loam/gen/measure"
	"loam/gen/method"
	"loam/wire"
)

// keeper is a sender that stores the frames.
type keeper struct {
	frames [][]byte
	closed bool
}

func (k *keeper) Layer() method.Layer { return method.Frame }
func (k *keeper) Send(n int, fill func([]byte) int) (int, error) {
	for range n {
		slot := make([]byte, 2048)
		k.frames = append(k.frames, slot[:fill(slot)])
	}
	return n, nil
}
func (k *keeper) Flush(time.Duration) error { return nil }
func (k *keeper) Counters() method.Counters { return method.Counters{} }
func (k *keeper) Close() error              { k.closed = true; return nil }

// list is a receiver that delivers a list of frames.
type list struct{ frames [][]byte }

func (l *list) Receive(_ time.Duration, got func([]byte, int64)) (int, error) {
	n := len(l.frames)
	for _, f := range l.frames {
		got(f, 0)
	}
	l.frames = nil
	return n, nil
}
func (l *list) Drops() uint64 { return 0 }
func (l *list) Close() error  { return nil }

// tagged returns a frame of a template with a tag.
func tagged(t *testing.T, text string) []byte {
	t.Helper()
	tpl, err := frame.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := frame.Compile(tpl, frame.Options{Sizes: frame.FixedSize(128), Reserve: measure.TagLen})
	if err != nil {
		t.Fatal(err)
	}
	b, f := make([]byte, p.MaxLen()), p.Filler(0, 1)
	b = b[:f.Next(b)]
	measure.Tag{Stream: 3, Sequence: 9}.Put(f.Body(b))
	return b
}

// A tagged UDP frame is sent back with addresses and ports swapped, correct checksums and an unchanged tag. All
// other frames are only received.
func TestReflect(t *testing.T) {
	v4 := tagged(t, "eth dst=02:00:00:00:00:02 src=02:00:00:00:00:01; ip src=10.0.0.1 dst=10.0.0.2; udp sport=1111 dport=9")
	v6 := tagged(t, "eth; ip6 src=2001:db8::1 dst=2001:db8::2; udp sport=1111 dport=9")
	last := tagged(t, "eth; ip ttl=1; udp")
	want := bytes.Clone(v4)
	k := &keeper{}
	in := &list{[][]byte{v4, v6, last, tagged(t, "eth; ip; tcp"), make([]byte, 60), make([]byte, 14)}}
	r := Reflect(in, k)
	count := 0
	n, err := r.Receive(0, func([]byte, int64) { count++ })
	if err != nil || n != 6 || count != 6 || len(k.frames) != 2 {
		t.Fatalf("%d received, %d sent back, %v", count, len(k.frames), err)
	}
	if !bytes.Equal(v4, want) {
		t.Error("the frame that was received has changed")
	}
	eth, rest, _ := wire.ParseEthernet(k.frames[0])
	ip, body, err := wire.ParseIPv4(rest)
	if err != nil || eth.Dst.String() != "02:00:00:00:00:01" || ip.Dst.String() != "10.0.0.1" || ip.Src.String() != "10.0.0.2" || ip.TTL != 63 || !wire.IPv4ChecksumOK(rest) {
		t.Errorf("%+v, %+v, %v", eth, ip, err)
	}
	if udp, _, err := wire.ParseUDP(body); err != nil || udp.SrcPort != 9 || udp.DstPort != 1111 || !wire.UDPChecksumOK(body, ip.Src, ip.Dst) {
		t.Errorf("%+v, %v", udp, err)
	}
	_, rest, _ = wire.ParseEthernet(k.frames[1])
	ip6, body, err := wire.ParseIPv6(rest)
	if err != nil || ip6.Dst.String() != "2001:db8::1" || ip6.HopLimit != 63 || !wire.UDPChecksumOK(body, ip6.Src, ip6.Dst) {
		t.Errorf("%+v, %v", ip6, err)
	}
	for _, f := range k.frames {
		if tag, ok := find(f); !ok || tag.Stream != 3 || tag.Sequence != 9 {
			t.Errorf("%+v, %v", tag, ok)
		}
	}
	if r.Close(); !k.closed {
		t.Error("the sender is still open")
	}
}

// If more frames arrive than fit into a batch, all of them are sent back.
func TestReflectMany(t *testing.T) {
	f := tagged(t, "eth; ip; udp")
	in, k := &list{}, &keeper{}
	for range 3*reflectBatch + 5 {
		in.frames = append(in.frames, f)
	}
	r := Reflect(in, k)
	r.Receive(0, func([]byte, int64) {})
	if len(k.frames) != 3*reflectBatch+5 {
		t.Errorf("%d frames", len(k.frames))
	}
}
