package sockdiag

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/inet"
	"loam/posix/netlink"
	"loam/posix/procnet"
	"loam/posix/unix"
)

// unixRequestSize is the size of struct unix_diag_req in bytes (linux/unix_diag.h).
const unixRequestSize = 24

// unixRequest is a struct unix_diag_req.
type unixRequest struct {
	states, inode, show uint32 // inode: the only requested socket; 0: all sockets
	inodes              map[*unix.Socket]int
	uid                 int32
}

func dumpUnix(v *procnet.View, request []byte, emit func([]byte)) linux.Errno {
	if len(request) < unixRequestSize {
		return linux.EINVAL
	}
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(request[4*i:]) }
	q := unixRequest{word(1), word(2), word(3), map[*unix.Socket]int{}, v.UID}
	var all []*unix.Socket
	for inode, o := range v.Opened {
		if s, ok := o.File.(*unix.Socket); ok {
			q.inodes[s] = inode
			all = append(all, s)
		}
	}
	for _, s := range all {
		d := s.Diagnose()
		if q.states>>unixState(d)&1 != 0 && (q.inode == 0 || q.inode == uint32(q.inodes[s])) {
			emit(q.describe(s, d))
		}
	}
	return 0
}

// unixState returns the state of a socket, in the numbers of TCP's states.
func unixState(d unix.Diagnosis) byte {
	switch {
	case d.Listening:
		return inet.StateListen
	case d.Peer != nil:
		return inet.StateEstablished
	}
	return inet.StateClose
}

// describe returns a struct unix_diag_msg with the requested attributes.
func (q *unixRequest) describe(s *unix.Socket, d unix.Diagnosis) []byte {
	le := binary.NativeEndian
	b := []byte{linux.AF_UNIX, byte(s.Type), unixState(d), 0}
	b = le.AppendUint32(b, uint32(q.inodes[s]))
	b = le.AppendUint64(b, uint64(q.inodes[s]))
	if q.show&linux.UDIAG_SHOW_NAME != 0 && d.Name != "" {
		netlink.Attribute(&b, linux.UNIX_DIAG_NAME, []byte(d.Name))
	}
	if peer := q.inodes[d.Peer]; q.show&linux.UDIAG_SHOW_PEER != 0 && peer != 0 {
		netlink.Attribute(&b, linux.UNIX_DIAG_PEER, le.AppendUint32(nil, uint32(peer)))
	}
	if q.show&linux.UDIAG_SHOW_RQLEN != 0 {
		received, sent := d.Waiting, d.Backlog
		if !d.Listening {
			received, sent = s.Buffered(), s.Unsent()
		}
		netlink.Attribute(&b, linux.UNIX_DIAG_RQLEN, le.AppendUint32(le.AppendUint32(nil, uint32(received)), uint32(sent)))
	}
	if q.show&linux.UDIAG_SHOW_UID != 0 {
		netlink.Attribute(&b, linux.UNIX_DIAG_UID, le.AppendUint32(nil, uint32(q.uid)))
	}
	return b
}
