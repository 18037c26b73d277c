package rt

import (
	"net/netip"
	"os"
	"sync"
	"syscall"

	"loam/posix"
	"loam/unikernel/guest"
	"loam/usernet/hand"
)

// Connections of published ports that the loam command hands over: descriptors of the
// host that arrive by a socket. They are the only ones that a sealed process gets, and
// their numbers begin at a bound that the seal knows (hostHanded).

// handedLink is this end of the socket to the gateway.
type handedLink struct {
	fd   int // of the host
	file *os.File
	raw  syscall.RawConn
	ways []posix.Way // by which connections may lead to the program, with ports of 0

	mu     sync.Mutex
	ends   []byte // to be told; guarded by mu
	behind bool   // tellLate runs; guarded by mu
}

// handedFrom is the socket that the gateway hands connections over by; nil: it does not.
var handedFrom *handedLink

// openHanded prepares the socket. Nothing is received before the process is sealed.
func openHanded(c guest.Config) error {
	if c.Handed == 0 {
		return nil
	}
	if err := syscall.SetNonblock(HostFD+c.Handed, true); err != nil {
		return err
	}
	h := &handedLink{fd: c.Handed, file: hostFile(c.Handed, "handed")}
	for _, l := range c.Links {
		h.way(l.Address, l.Gateway)
		h.way(l.Address6, c.HandedFrom6)
	}
	var err error
	h.raw, err = h.file.SyscallConn()
	handedFrom = h
	return err
}

// way adds one, to the program's address.
func (h *handedLink) way(own netip.Prefix, from netip.Addr) {
	if own.IsValid() && from.IsValid() {
		h.ways = append(h.ways, posix.Way{At: netip.AddrPortFrom(own.Addr(), 0), From: netip.AddrPortFrom(from, 0)})
	}
}

// Handed is the descriptor of the socket that connections are handed over by, or -1.
func Handed() int {
	if handedFrom == nil {
		return -1
	}
	return handedFrom.fd
}

// TakeHanded begins to take connections, whose descriptors are at or above first.
func TakeHanded(first int) {
	if handedFrom != nil {
		hostHanded = first
		go handedFrom.loop()
	}
}

// hostHanded is the least descriptor that a connection that was handed over has.
var hostHanded int

// loop takes connections until the gateway has gone.
func (h *handedLink) loop() {
	message, control := make([]byte, hand.ConnectionSize), make([]byte, syscall.CmsgSpace(4))
	h.raw.Read(func(socket uintptr) (over bool) {
		for {
			const flags = syscall.MSG_CMSG_CLOEXEC | syscall.MSG_DONTWAIT
			n, controls, _, _, err := syscall.Recvmsg(int(socket), message, control, flags)
			switch {
			case err == syscall.EINTR:
			case err == syscall.EAGAIN:
				return false
			case err != nil || n == 0:
				return true
			default:
				h.take(message[:n], control[:controls])
			}
		}
	})
}

// take gives the program the connection of a message. There is no descriptor with it if
// the process has as many as it may.
func (h *handedLink) take(message, control []byte) {
	c, ok := hand.ParseConnection(message)
	if !ok {
		return
	}
	conn := &hostConn{link: h, client: c.Client, fd: -1}
	if list, err := syscall.ParseSocketControlMessage(control); err == nil && len(list) == 1 {
		if fds, err := syscall.ParseUnixRights(&list[0]); err == nil {
			conn.fd = fds[0]
		}
	}
	if conn.fd < hostHanded {
		conn.Close(true, true)
		return
	}
	ways := make([]posix.Way, len(h.ways))
	for i, w := range h.ways {
		ways[i] = posix.Way{At: netip.AddrPortFrom(w.At.Addr(), c.Port), From: netip.AddrPortFrom(w.From.Addr(), c.Client)}
	}
	process.Hand(conn, ways...)
}

// tell has the gateway know that a connection has ended. It does not wait.
func (h *handedLink) tell(e hand.End) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = e.Append(h.ends)
	if !h.behind && !h.flush() {
		h.behind = true
		go h.tellLate()
	}
}

// maxEnds bounds a message, in bytes: the gateway reads no longer ones.
const maxEnds = 4096 / hand.EndSize * hand.EndSize

// flush sends what there is to tell; false: not all could be sent now. The caller holds mu.
func (h *handedLink) flush() bool {
	for len(h.ends) > 0 {
		n, errno := hostBytes(syscall.SYS_WRITE, uintptr(h.fd), h.ends[:min(len(h.ends), maxEnds)])
		switch errno {
		case 0:
			h.ends = h.ends[n:]
		case syscall.EAGAIN:
			return false
		default: // the gateway has gone
			h.ends = nil
		}
	}
	h.ends = nil
	return true
}

// tellLate sends when there is room.
func (h *handedLink) tellLate() {
	h.raw.Write(func(uintptr) (over bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		over = h.flush()
		h.behind = !over
		return over
	})
}
