package usernet

import (
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// Small writes of a guest arrive complete and in order, whether the gateway forwards them
// at once or later because the host's program does not read.
func TestTCPSmallWritesWhileTheHostDoesNotRead(t *testing.T) {
	n := newNetwork(t, loopback())
	guest, host := n.pair()
	host.SetReadBuffer(64 << 10)
	const size = 12 << 20
	go func() {
		defer guest.CloseWrite()
		source := io.LimitReader(rand.NewChaCha8([32]byte{7}), size)
		for buf := make([]byte, 1000); ; {
			k, err := io.ReadFull(source, buf)
			if k == 0 {
				return
			}
			if _, werr := guest.Write(buf[:k]); werr != nil || err != nil && err != io.ErrUnexpectedEOF {
				t.Errorf("writing: %v, %v", werr, err)
				return
			}
		}
	}()
	eventually(t, "the gateway never held anything back", func() bool { return n.holdsBack() })
	wantNoise(t, host, 7, size)
	guest.Close()
	host.Close()
	n.wantCounter(TCPBytesOut, size)
	n.wantCounter(TCPResets, 0)
}

// holdsBack reports whether a relay has bytes for the host, or is blocked writing to it.
func (n *network) holdsBack() (held bool) {
	n.relays.Range(func(key, _ any) bool {
		h := &key.(*relay).out
		if !h.mu.TryLock() {
			held = true // the goroutine is blocked in a write to the host, or a write is about to finish
			return false
		}
		held = len(h.rest) > 0
		h.mu.Unlock()
		return !held
	})
	return held
}

// The gateway forwards data on the goroutine that received it from the link. A request or a reply does not wait until
// the goroutine of the relay runs.
func TestTCPRequestAndAnswer(t *testing.T) {
	n := newNetwork(t, loopback())
	guest, host := n.pair()
	for _, c := range []net.Conn{guest, host} {
		c.SetDeadline(time.Now().Add(patience))
	}
	for range 1000 {
		send(t, guest, "request")
		want(t, host, "request")
		send(t, host, "answer")
		want(t, guest, "answer")
	}
	guest.Close()
	host.Close()
	n.wantCounter(TCPBytesOut, 7000)
	n.wantCounter(TCPResets, 0)
}
