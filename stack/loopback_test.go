package stack

import (
	"io"
	"testing"
)

// Segments of full size pass the loopback, whose MTU exceeds the IPv4 length field.
func TestLoopbackBulk(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const size = 4 << 20
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Error(err)
		}
	}()
	c, err := s.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := io.Copy(io.Discard, c); n != size || err != nil {
		t.Errorf("received %d bytes, %v", n, err)
	}
	if n := s.Counters()[IPMalformed]; n != 0 {
		t.Errorf("%d packets were malformed", n)
	}
}
