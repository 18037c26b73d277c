package call

import (
	"testing"

	"loam/abi/linux"
)

// closingMemory is a flatMemory whose first read closes a descriptor, as another thread may do while the call waits for a page.
type closingMemory struct {
	*flatMemory
	c  Caller
	fd int
}

func (m *closingMemory) Read(b []byte, addr uint64) linux.Errno {
	m.c.Process.Close(m.fd)
	return m.flatMemory.Read(b, addr)
}

// A call whose descriptor is closed while the call reads the memory of the program returns EBADF.
func TestDescriptorClosedDuringCall(t *testing.T) {
	c, m := newCaller(t, 64)
	fds, errno := c.Process.SocketPair(linux.AF_UNIX, linux.SOCK_STREAM, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	le.PutUint32(m.bytes, sizeofDescriptor)
	c.Memory = &closingMemory{m, c, fds[0]}
	fails(t, c, linux.EBADF, linux.SYS_GETSOCKOPT, uint64(fds[0]), linux.SOL_SOCKET, linux.SO_PEERPIDFD, base+8, base)
	c.Memory = m
	if errno := c.queryRegion(fds[0], base); errno != linux.EBADF {
		t.Errorf("PROCMAP_QUERY: %v, want EBADF", errno)
	}
}
