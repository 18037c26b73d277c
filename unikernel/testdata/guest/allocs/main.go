// Command allocs counts the allocations of sending and receiving, with buffers on the heap and on the stack.
package main

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"example.com/guest/internal/check"
)

func main() {
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Nil(err, "listen")
	heap := make([]byte, 1024)
	keep = heap
	check.Equal(datagrams(udp, heap), 0, "objects for a datagram from the heap")
	check.Equal(datagrams(udp, make([]byte, 1024)), 0, "objects for a datagram from the stack")
	check.Equal(messages(udp, heap), 0, "objects for a message from the heap")
	check.Equal(messages(udp, make([]byte, 1024)), 0, "objects for a message from the stack")

	tcp, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Nil(err, "listen")
	a, err := net.DialTCP("tcp4", nil, tcp.Addr().(*net.TCPAddr))
	check.Nil(err, "dial")
	b, err := tcp.AcceptTCP()
	check.Nil(err, "accept")
	check.Equal(stream(a, b, heap), 0, "objects for a read and a write of the heap")
	check.Equal(stream(a, b, make([]byte, 1024)), 0, "objects for a read and a write of the stack")

	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	check.Nil(err, "open")
	regular, err := os.CreateTemp("", "allocs")
	check.Nil(err, "create")
	defer os.Remove(regular.Name())
	for _, f := range []*os.File{null, regular} {
		check.Equal(file(f, heap), 0, "objects for a write and a read of a file, from the heap")
		check.Equal(file(f, make([]byte, 1024)), 0, "objects for a write and a read of a file, from the stack")
	}
	check.Done()
}

// keep forces its contents to be allocated on the heap.
var keep []byte

const runs = 1000

// datagrams sends and receives a datagram by sendto(2) and recvfrom(2).
func datagrams(c *net.UDPConn, b []byte) int {
	to := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return int(testing.AllocsPerRun(runs, func() {
		if _, err := c.WriteToUDPAddrPort(b, to); err != nil {
			check.Nil(err, "send")
		}
		if n, _, err := c.ReadFromUDPAddrPort(b); n != len(b) || err != nil {
			check.That(false, "received %d, %v", n, err)
		}
	}))
}

// messages sends and receives a datagram by sendmsg(2) and recvmsg(2).
func messages(c *net.UDPConn, b []byte) int {
	to := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return int(testing.AllocsPerRun(runs, func() {
		if _, _, err := c.WriteMsgUDPAddrPort(b, nil, to); err != nil {
			check.Nil(err, "send")
		}
		if n, _, _, _, err := c.ReadMsgUDPAddrPort(b, nil); n != len(b) || err != nil {
			check.That(false, "received %d, %v", n, err)
		}
	}))
}

// file writes and reads a file, by package os and by package syscall.
func file(f *os.File, b []byte) int {
	fd := int(f.Fd())
	return int(testing.AllocsPerRun(runs, func() {
		f.Seek(0, io.SeekStart)
		_, err := f.Write(b)
		if err == nil {
			_, err = syscall.Write(fd, b)
		}
		f.Seek(0, io.SeekStart)
		if err == nil && f.Name() != os.DevNull {
			_, err = f.Read(b)
		}
		if err == nil {
			_, err = syscall.Read(fd, b)
		}
		if err == nil {
			_, err = f.WriteAt(b, 0)
		}
		if err == nil && f.Name() != os.DevNull {
			_, err = f.ReadAt(b, 0)
		}
		if err != nil {
			check.Nil(err, f.Name())
		}
	}))
}

func stream(from, to *net.TCPConn, b []byte) int {
	return int(testing.AllocsPerRun(runs, func() {
		if _, err := from.Write(b); err != nil {
			check.Nil(err, "write")
		}
		for got := 0; got < len(b); {
			n, err := to.Read(b[got:])
			if err != nil {
				check.Nil(err, "read")
			}
			got += n
		}
	}))
}
