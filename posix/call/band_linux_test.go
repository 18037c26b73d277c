package call

import (
	"testing"

	"loam/abi/linux"
)

// epoll(7) with EPOLLET and EPOLLOUT or EPOLLWRBAND reports when a peer has made room. A set that watches only EPOLLWRBAND is
// notified as well.
func TestEdgesOfWritersAsOnLinux(t *testing.T) {
	const event, events, control = 0x100, 0x200, linux.SYS_EPOLL_CTL
	for name, pair := range map[string]func(s *sequence) (reader, writer uint64){
		"pipe": func(s *sequence) (r, w uint64) { return s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK) },
		"stream": func(s *sequence) (r, w uint64) {
			return s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0, at(0))
		},
		"datagram": func(s *sequence) (r, w uint64) {
			return s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
		},
		"eventfd": func(s *sequence) (r, w uint64) {
			e := s.open(linux.SYS_EVENTFD2, 0, linux.EFD_NONBLOCK)
			return e, e
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sequence{}
			reader, writer := pair(s)
			var sets []uint64
			for _, mask := range []uint32{linux.POLLOUT, linux.POLLOUT | linux.EPOLLET, linux.POLLWRBAND, linux.POLLWRBAND | linux.EPOLLET} {
				set := s.open(linux.SYS_EPOLL_CREATE1, 0)
				s.put(event, le.AppendUint64(le.AppendUint32(nil, mask), 7)...)
				s.call(control, set, linux.EPOLL_CTL_ADD, writer, at(event))
				sets = append(sets, set)
			}
			look := func() {
				for _, set := range sets {
					s.put(events, make([]byte, 12)...)
					s.call(linux.SYS_EPOLL_WAIT, set, at(events), 1, 0)
				}
			}
			look()
			look()
			s.put(0x1000, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)
			for range 3 {
				s.call(linux.SYS_WRITE, writer, at(0x1000), 8)
				look()
				s.call(linux.SYS_READ, reader, at(0x1000), 8)
				look()
			}
			if name == "pipe" {
				for range 17 {
					s.call(linux.SYS_WRITE, writer, at(0x1000), 4096)
					look()
				}
				for range 5 {
					s.call(linux.SYS_READ, reader, at(0x1000), 2048)
					look()
				}
				s.call(linux.SYS_WRITE, writer, at(0x1000), 4096)
				look()
				s.call(linux.SYS_READ, reader, at(0x1000), 8192)
				look()
			}
			s.call(linux.SYS_CLOSE, reader)
			look()
			asOnLinux(t, s)
		})
	}
}
