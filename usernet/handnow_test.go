package usernet

import (
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// Small writes of a guest arrive whole and in order, whether the gateway hands them over
// at once or, while the host's program does not read, later.
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

// holdsBack reports whether a relay has bytes for the host, or waits for it.
func (n *network) holdsBack() (held bool) {
	n.relays.Range(func(key, _ any) bool {
		h := &key.(*relay).out
		if !h.mu.TryLock() {
			held = true // the goroutine waits for the host, or is about to be done
			return false
		}
		held = len(h.rest) > 0
		h.mu.Unlock()
		return !held
	})
	return held
}

// What was handed over at once is with the host when nothing but the link's thread has
// run: no relay's goroutine holds up a request and its answer.
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
