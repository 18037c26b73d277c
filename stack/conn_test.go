package stack_test

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"

	"loam/link/pipe"
	"loam/stack"
)

// TCP connections pass the suite of golang.org/x/net for net.Conn.
func TestTCPConnConformance(t *testing.T) {
	for _, shards := range []int{1, 2} {
		nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
			p := newPair(t, stack.Config{Shards: shards}, pipe.Config{})
			l, err := p.b.Listen("tcp", "10.0.0.2:80")
			if err != nil {
				return nil, nil, nil, err
			}
			if a, err = p.a.Dial("tcp", "10.0.0.2:80"); err != nil {
				return nil, nil, nil, err
			}
			if b, err = l.Accept(); err != nil {
				return nil, nil, nil, err
			}
			return a, b, func() { a.Close(); b.Close(); l.Close(); p.a.Close(); p.b.Close() }, nil
		})
	}
}
