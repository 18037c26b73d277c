package stack

import (
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"loam/stack/tcp"
	"loam/stack/tcp/congestion"
)

// Both ends select BBR, one by the listener's options and one when dialing. The dialer
// changes it while sending. Unknown names are rejected everywhere.
func TestCongestionOption(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	l, err := s.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), 1, TCPOptions{Congestion: "bbr"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.DialTCP(netip.AddrPort{}, l.LocalAddrPort(), TCPOptions{Congestion: "bbr"})
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	go func() {
		accepted.Write(make([]byte, size))
		accepted.Close()
	}()
	for _, name := range []string{"bbr", "cubic", "bbr"} {
		if err := c.SetOptions(func(o *TCPOptions) { o.Congestion = name }); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); c.Info().Congestion != name; { // repeats because the shard may be busy
			if time.Now().After(end) {
				t.Fatalf("%s instead of %s", c.Info().Congestion, name)
			}
		}
		if _, err := c.Write(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if i := accepted.(*TCPConn).Info(); i.Congestion != "bbr" || i.PacingRate == 0 || i.BBR.PacingGain == 0 {
		t.Errorf("the listener's connection: %s, rate %d, %+v", i.Congestion, i.PacingRate, i.BBR)
	}
	if n, err := io.Copy(io.Discard, c); n != size && err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	bad := TCPOptions{Congestion: "none such"}
	if _, err := s.DialTCP(netip.AddrPort{}, l.LocalAddrPort(), bad); !errors.Is(err, ErrInvalid) {
		t.Errorf("dial: %v", err)
	}
	if _, err := s.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), 1, bad); !errors.Is(err, ErrInvalid) {
		t.Errorf("listen: %v", err)
	}
	if err := c.SetOptions(func(o *TCPOptions) { *o = bad }); !errors.Is(err, ErrInvalid) || c.Options().Congestion != "bbr" {
		t.Errorf("set: %v, %q", err, c.Options().Congestion)
	}
}

func TestMaxPacingRateOption(t *testing.T) {
	s := New(Config{TCP: tcp.Config{Congestion: congestion.NewBBR}})
	defer s.Close()
	l, err := s.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), 1, TCPOptions{MaxPacingRate: 123_456})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DialTCP(netip.AddrPort{}, l.LocalAddrPort(), TCPOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if i := c.(*TCPConn).Info(); i.Congestion != "bbr" || i.MaxPacingRate != 123_456 || i.PacingRate > 123_456 {
		t.Errorf("%s, rate %d of %d", i.Congestion, i.PacingRate, i.MaxPacingRate)
	}
}
