package netlink

import (
	"testing"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
)

// A malformed request returns EINVAL.
func TestRouteRequest(t *testing.T) {
	net := stack.New(stack.Config{Shards: 1})
	defer net.Close()
	for _, body := range [][]byte{
		nil,
		make([]byte, 11),
		{linux.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{linux.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, linux.RTA_DST, 0, 1, 2, 3, 0},
		{linux.AF_INET6, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, linux.RTA_DST, 0, 1, 2, 3, 4},
		{linux.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, linux.RTA_DST, 0, 1, 2, 3, 4, 6, 0, linux.RTA_OIF, 0, 1, 0},
	} {
		var r reply
		if errno := describeRouteTo(net, &r, body); errno != linux.EINVAL {
			t.Errorf("%v: errno %v", body, errno)
		}
		if r.datagrams != nil {
			t.Errorf("%v: %v", body, r.datagrams)
		}
	}
}

// Malformed requests are answered or rejected, and break nothing.
func FuzzNetlink(f *testing.F) {
	f.Add([]byte{16, 0, 0, 0, 18, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255, 18, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{17, 0, 0, 0, 18, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9})
	net := stack.New(stack.Config{Shards: 1})
	f.Cleanup(func() { net.Close() })
	s, _ := New(net, new(file.Serial), 7, linux.SOCK_RAW, linux.NETLINK_ROUTE)
	f.Fuzz(func(t *testing.T, b []byte) {
		s.Send(b, socket.Outgoing{})
		for {
			r, errno := s.Recv(make([]byte, 1<<16), 0)
			if errno != 0 {
				break
			}
			if r.N == 0 {
				t.Error("an empty answer")
			}
		}
	})
}
