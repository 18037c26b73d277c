package rt

import (
	"net/netip"
	"os"
	"sync"
	"syscall"

	"loam/abi/linux"
	"loam/posix"
	"loam/unikernel/guest"
	"loam/usernet/hand"
)

// Connections to published ports that the loam command hands over. Each is a descriptor of the host,
// received as a control message on a Unix socket. A sealed process gets no other new descriptors from the
// host. Their numbers start at hostHanded, a bound that the seal checks.

// handedLink is the guest's end of the socket to the gateway.
type handedLink struct {
	fd   int // descriptor of the host for the socket to the gateway
	file *os.File
	raw  syscall.RawConn
	ways []posix.Way // address pairs of connections that the program may receive; their ports are 0

	mu     sync.Mutex
	ends   []byte // encoded hand.End records to send; guarded by mu
	behind bool   // sendLate is running; guarded by mu
}

// handedFrom is the socket for handed-over connections, or nil if the gateway hands none over.
var handedFrom *handedLink

// openHanded sets up the socket. It receives nothing before takeHanded.
func openHanded(c guest.Config) error {
	if c.Handed == 0 {
		return nil
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

// way adds a pair of addresses to ways, if both are valid: the program's own address, and the gateway's
// address as the peer.
func (h *handedLink) way(own netip.Prefix, from netip.Addr) {
	if own.IsValid() && from.IsValid() {
		h.ways = append(h.ways, posix.Way{At: netip.AddrPortFrom(own.Addr(), 0), From: netip.AddrPortFrom(from, 0)})
	}
}

// takeHanded starts receiving connections. The numbers of their descriptors are at least the parameter first.
func takeHanded(first int) {
	if handedFrom != nil {
		hostHanded = first
		go handedFrom.loop()
	}
}

// hostHanded is the lowest descriptor number of a handed-over connection.
var hostHanded int

// loop receives connections until the gateway closes the socket.
func (h *handedLink) loop() {
	message, control := make([]byte, hand.ConnectionSize), make([]byte, syscall.CmsgSpace(4))
	h.raw.Read(func(socket uintptr) (over bool) {
		for {
			const flags = linux.MSG_CMSG_CLOEXEC | linux.MSG_DONTWAIT
			n, controls, _, _, err := syscall.Recvmsg(int(socket), message, control, flags)
			switch {
			case err == linux.EINTR:
			case err == linux.EAGAIN:
				return false
			case err != nil || n == 0:
				return true
			default:
				h.take(message[:n], control[:controls])
			}
		}
	})
}

// take delivers the connection of a message to the program. The message carries no descriptor if the
// process has reached its limit on open files; the connection is then refused.
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

// report notifies the gateway that a connection has ended. It never blocks.
func (h *handedLink) report(e hand.End) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = e.Append(h.ends)
	if !h.behind && !h.flush() {
		h.behind = true
		go h.sendLate()
	}
}

// maxEnds is the maximum message size in bytes: the gateway reads no more at once.
const maxEnds = 4096 / hand.EndSize * hand.EndSize

// flush sends the queued records. It reports whether all were sent. The caller holds mu.
func (h *handedLink) flush() bool {
	for len(h.ends) > 0 {
		n, errno := hostBytes(linux.SYS_WRITE, uintptr(h.fd), h.ends[:min(len(h.ends), maxEnds)])
		switch errno {
		case 0:
			h.ends = h.ends[n:]
		case linux.EAGAIN:
			return false
		default: // the gateway has ended, so nothing needs the records
			h.ends = nil
		}
	}
	h.ends = nil
	return true
}

// sendLate sends the queued records when the socket becomes writable.
func (h *handedLink) sendLate() {
	h.raw.Write(func(uintptr) (over bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		over = h.flush()
		h.behind = !over
		return over
	})
}
