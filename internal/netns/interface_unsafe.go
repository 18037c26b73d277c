//go:build linux

package netns

import (
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// Configuration of interfaces by ioctls (netdevice(7)).
//
// Safety, for every use of unsafe in this file: the kernel accesses the request only during the call, and the request
// is as large as struct ifreq.

type ifreq struct {
	name [16]byte
	data [24]byte
}

// request issues an ioctl on the interface. The function fill sets the union of the
// request before the call.
func request(t testing.TB, number uintptr, name string, fill func(data *[24]byte)) *ifreq {
	t.Helper()
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(s)
	var r ifreq
	copy(r.name[:15], name)
	fill(&r.data)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(s), number, uintptr(unsafe.Pointer(&r))); errno != 0 {
		t.Fatalf("%s: ioctl %#x: %v", name, number, errno)
	}
	return &r
}

// Up sets the interface up, with an MTU if mtu is not 0.
func Up(t testing.TB, name string, mtu int) {
	t.Helper()
	if mtu != 0 {
		request(t, syscall.SIOCSIFMTU, name, func(d *[24]byte) { *(*int32)(unsafe.Pointer(d)) = int32(mtu) })
	}
	setFlags(t, name, syscall.IFF_UP|syscall.IFF_RUNNING|syscall.IFF_NOARP)
}

// Down sets the interface down.
func Down(t testing.TB, name string) {
	t.Helper()
	setFlags(t, name, 0)
}

func setFlags(t testing.TB, name string, flags uint16) {
	t.Helper()
	request(t, syscall.SIOCSIFFLAGS, name, func(d *[24]byte) { *(*uint16)(unsafe.Pointer(d)) = flags })
}

// Index returns the index of the interface.
func Index(t testing.TB, name string) int {
	t.Helper()
	r := request(t, syscall.SIOCGIFINDEX, name, func(*[24]byte) {})
	return int(*(*int32)(unsafe.Pointer(&r.data)))
}

// Address assigns an IPv4 address with a prefix to the interface.
func Address(t testing.TB, name string, p netip.Prefix) {
	t.Helper()
	mask := ^uint32(0) << (32 - p.Bits())
	set := func(number uintptr, a [4]byte) {
		request(t, number, name, func(d *[24]byte) {
			*(*syscall.RawSockaddrInet4)(unsafe.Pointer(d)) = syscall.RawSockaddrInet4{Family: syscall.AF_INET, Addr: a}
		})
	}
	set(syscall.SIOCSIFADDR, p.Addr().As4())
	set(syscall.SIOCSIFNETMASK, [4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)})
}

// Remove deletes the interface by a netlink request (rtnetlink(7)).
func Remove(t testing.TB, name string) {
	t.Helper()
	s, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(s)
	var m struct {
		syscall.NlMsghdr
		syscall.IfInfomsg
	}
	m.Len = uint32(unsafe.Sizeof(m))
	m.NlMsghdr.Type, m.NlMsghdr.Flags = syscall.RTM_DELLINK, syscall.NLM_F_REQUEST|syscall.NLM_F_ACK
	m.Index = int32(Index(t, name))
	if err := syscall.Sendto(s, (*[unsafe.Sizeof(m)]byte)(unsafe.Pointer(&m))[:], 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, err := syscall.Read(s, answer)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := syscall.ParseNetlinkMessage(answer[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%s: %d answers, %v", name, len(messages), err)
	}
	if errno := *(*int32)(unsafe.Pointer(&messages[0].Data[0])); errno != 0 {
		t.Fatalf("%s: %v", name, syscall.Errno(-errno))
	}
}

// FinishChecksums makes the kernel compute the checksums of packets sent on the interface, like ethtool
// -K NAME tx off. On a veth, the kernel otherwise leaves them to hardware that does not exist.
func FinishChecksums(t testing.TB, name string) {
	t.Helper()
	const ethtool, setTxChecksum = 0x8946, 0x17 // SIOCETHTOOL and ETHTOOL_STXCSUM
	value := &struct{ command, on uint32 }{setTxChecksum, 0}
	request(t, ethtool, name, func(d *[24]byte) {
		*(*unsafe.Pointer)(unsafe.Pointer(d)) = unsafe.Pointer(value)
	})
	runtime.KeepAlive(value)
}
