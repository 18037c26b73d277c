package stack_test

import (
	"fmt"
	"net"
	"testing"

	"golang.org/x/net/nettest"

	"loam/link/pipe"
	"loam/stack"
)

// TCP connections pass the net.Conn suite of golang.org/x/net, on every kind of device.
func TestTCPConnConformance(t *testing.T) {
	for _, shards := range []int{1, 2, 4} {
		for name, p := range map[string]pipe.Config{
			"pipe": {}, "offloads": {Offloads: pipe.AllOffloads}, "queues": {Queues: 2, Depth: 8},
		} {
			t.Run(fmt.Sprintf("%s,shards=%d", name, shards), func(t *testing.T) {
				nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
					pr := newPair(t, stack.Config{Shards: shards}, p)
					return join(pr.a, pr.b, "10.0.0.2:80")
				})
			})
		}
		t.Run(fmt.Sprintf("loopback,shards=%d", shards), func(t *testing.T) {
			nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
				s := stack.New(stack.Config{Shards: shards})
				return join(s, s, "127.0.0.1:80")
			})
		})
	}
}

// join connects client to server, which listens on address.
func join(client, server *stack.Stack, address string) (a, b net.Conn, stop func(), err error) {
	l, err := server.Listen("tcp", address)
	if err != nil {
		return nil, nil, nil, err
	}
	if a, err = client.Dial("tcp", address); err != nil {
		return nil, nil, nil, err
	}
	if b, err = l.Accept(); err != nil {
		return nil, nil, nil, err
	}
	return a, b, func() { a.Close(); b.Close(); l.Close(); client.Close(); server.Close() }, nil
}
