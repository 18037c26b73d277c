package stack_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Floods of segments that belong to no connection.

// sieve is a device that drops stray segments (TCP segments without a connection) on request, as the kernel does for a TAP device.
type sieve struct {
	*pipe.Device
	flows  *link.Flows
	counts []atomic.Uint32 // counters of flows, 8 bits each
	refuse error           // error that Flows returns; nil: none
	every  int             // one of this number of stray segments is delivered; 0: none

	mu      sync.Mutex // guards the fields below
	asked   []link.Kinds
	dropped int
}

func newSieve(d *pipe.Device) *sieve {
	s := &sieve{Device: d, counts: make([]atomic.Uint32, link.FlowWords)}
	s.flows = link.NewFlows(s.counts, link.FlowKeys{1, 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb})
	return s
}

func (s *sieve) Flows() (*link.Flows, error) { return s.flows, s.refuse }

func (s *sieve) Thin(t link.Thinning) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, t.Kinds)
	return nil
}

func (s *sieve) Queues() []link.Queue { return []link.Queue{sieveQueue{s.Device.Queues()[0], s}} }

// sum returns the number of flows that the stack has added to the device's set, as the sum of the counters.
func (s *sieve) sum() (n int) {
	for i := range s.counts {
		for w := s.counts[i].Load(); w != 0; w >>= 8 {
			n += int(w & 255)
		}
	}
	return n
}

type sieveQueue struct {
	link.Queue
	s *sieve
}

func (q sieveQueue) Recv(fs []*link.Frame) (int, error) {
	for {
		n, err := q.Queue.Recv(fs)
		kept := fs[:0]
		for _, f := range fs[:n] {
			if q.s.drops(f.Bytes()) {
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

// drops reports whether a frame is dropped. The peer sends IPv4 packets without options.
func (s *sieve) drops(b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	const source, ports, flags = wire.EthernetLen + 12, wire.EthernetLen + 20, wire.EthernetLen + 33
	if len(s.asked) == 0 || s.asked[len(s.asked)-1]&link.KindStray == 0 {
		return false
	}
	if len(b) <= flags || wire.Protocol(b[wire.EthernetLen+9]) != wire.ProtoTCP || wire.TCPFlags(b[flags])&(wire.SYN|wire.ACK) == wire.SYN {
		return false
	}
	f := link.Flow{
		Src: binary.BigEndian.Uint32(b[source:]), Dst: binary.BigEndian.Uint32(b[source+4:]),
		SrcPort: binary.BigEndian.Uint16(b[ports:]), DstPort: binary.BigEndian.Uint16(b[ports+2:]),
	}
	if s.flows.Has(f) {
		return false
	}
	s.dropped++
	return s.every == 0 || s.dropped%s.every != 0
}

// bySieve runs a script as byHand does, on a stack whose device is a sieve (drops stray segments on request).
func bySieve(t *testing.T, shards int, script func(t *testing.T, w *peer, s *sieve)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		link.Track(true)
		near, far := pipe.New(pipe.Config{})
		s := newSieve(near)
		w := attachPeerBy(t, stack.New(stack.Config{Shards: shards}), s, far, stack.InterfaceConfig{NoIPv6: true})
		script(t, w.introduce(), s)
	})
}

// strays sends n segments of connections that do not exist.
func (w *peer) strays(n int) {
	for i := range n {
		h := wire.TCP{SrcPort: 1024 + uint16(i), DstPort: 80, Seq: uint32(i), Ack: 1, Flags: wire.ACK, Window: 1000}
		src := netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})
		w.sendIP(wire.IPv4{Protocol: wire.ProtoTCP, Src: src}, segment(h, src, addrA, ""))
	}
	w.forget()
}

func (s *sieve) want(t *testing.T, sentence string, kinds ...link.Kinds) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.asked, kinds) {
		t.Errorf("%s: the device was asked for %v, want %v", sentence, s.asked, kinds)
	}
}

const enough = 4096 + 8 // 4096 stray segments count as a flood; 8 more, since shards do not get exactly equal shares

func TestStraysAreThinnedOut(t *testing.T) {
	for name, shards := range map[string]int{"one shard": 1, "four shards": 4} {
		t.Run(name, func(t *testing.T) {
			bySieve(t, shards, func(t *testing.T, w *peer, s *sieve) {
				w.throughPeer()
				s.every = 16
				w.strays(3000)
				w.advance(time.Second)
				w.strays(1500)
				s.want(t, "many strays in a long time are no flood")
				w.advance(time.Second)
				w.strays(2 * enough)
				s.want(t, "many in a short time are", link.KindStray)
				w.strays(16 * 600)
				w.advance(time.Second)
				s.want(t, "the flood goes on", link.KindStray, link.KindStray)
				w.strays(16 * 400)
				w.advance(time.Second)
				s.want(t, "the flood has ended", link.KindStray, link.KindStray, 0)
				w.strays(2 * enough)
				s.want(t, "there is another flood", link.KindStray, link.KindStray, 0, link.KindStray)
				w.wantCount("two floods are counted", stack.EthFloods, 2)
			})
		})
	}
}

// While all stray segments (of no connection) are dropped, connections in every state work. At the end, the device's set of connections is
// empty.
func TestConnectionsDuringStrayFlood(t *testing.T) {
	bySieve(t, 1, func(t *testing.T, w *peer, s *sieve) {
		w.throughPeer()
		l := mustListen(t, w.s, 80, 16)
		defer l.Close()
		old, earlier := w.accepted(l, 6000)
		before := w.closed(l, 6001)
		w.strays(enough)
		s.want(t, "strays are dropped", link.KindStray)
		old.send(wire.ACK, "still here?")
		wantRead(t, earlier, "a connection that is open is not disturbed", "still here?", nil)
		w.forget()
		before.next--
		before.send(wire.FIN|wire.ACK, "")
		before.want("nor one in TIME-WAIT", "A", "")

		p, c := w.accepted(l, 6002)
		p.send(wire.ACK, "hello")
		wantRead(t, c, "a new connection works", "hello", nil)
		w.forget()
		c.Close()
		p.want("the end", "FA", "")
		p.send(wire.FIN|wire.ACK, "")
		p.want("the peer's end", "A", "")
		p.next--
		p.send(wire.FIN|wire.ACK, "")
		p.want("it is in TIME-WAIT", "A", "")

		q := w.tcp(7000, 0)
		dialled, err := w.s.DialTCP(netip.AddrPort{}, q.local, stack.TCPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		q.take("a SYN goes out")
		q.send(wire.SYN|wire.ACK, "")
		q.want("the answer to it arrives", "A", "")

		dropped := s.dropped
		w.tcp(6003, 80).sendAs(wire.TCP{Seq: 1, Ack: 1, Flags: wire.ACK}, "")
		if s.dropped != dropped+1 {
			t.Error("a stray segment was not dropped")
		}
		w.wantNone("a stray segment is not answered")
		dialled.Abort()
		earlier.Abort()
		w.advance(5 * time.Minute)
		w.forget()
		if n := s.sum(); n != 0 {
			t.Errorf("%d flows are left in the set", n)
		}
	})
}

// The last segment of a handshake by SYN cookie is not dropped as stray, although no connection exists yet.
func TestCookieDuringStrayFlood(t *testing.T) {
	bySieve(t, 1, func(t *testing.T, w *peer, s *sieve) {
		w.throughPeer()
		l := mustListen(t, w.s, 80, 16)
		defer l.Close()
		w.strays(enough)
		s.want(t, "strays are dropped", link.KindStray)
		w.flood(16, 80)
		w.forget()
		p, c := w.accepted(l, 6000)
		w.wantCount("the listener has sent a cookie", stack.TCPCookiesSent, 1)
		p.send(wire.ACK, "hello")
		wantRead(t, c, "a connection by cookie works", "hello", nil)
		c.Abort()
		w.forget()
	})
}

func TestNoFlowsForStrays(t *testing.T) {
	bySieve(t, 1, func(t *testing.T, w *peer, s *sieve) {
		w.throughPeer()
		s.refuse = errors.New("not supported")
		w.strays(enough)
		s.refuse = nil
		w.strays(enough)
		s.want(t, "a device without a set of flows is not asked")
	})
}

// After an interface has been detached, connections no longer add themselves to its set of flows, or remove themselves.
func TestDetachDuringStrayFlood(t *testing.T) {
	bySieve(t, 2, func(t *testing.T, w *peer, s *sieve) {
		w.throughPeer()
		w.strays(2 * enough)
		s.want(t, "strays are dropped", link.KindStray)
		l := mustListen(t, w.s, 80, 16)
		defer l.Close()
		if err := w.ifc.Detach(); err != nil {
			t.Fatal(err)
		}
		before := s.sum()
		c, err := w.s.DialTCP(netip.AddrPort{}, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 80), stack.TCPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := s.sum(); n != before {
			t.Errorf("%d flows in the set, want %d", n, before)
		}
		c.Abort()
	})
}
