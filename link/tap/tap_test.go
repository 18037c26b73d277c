//go:build linux

package tap_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"loam/internal/netns"
	"loam/link"
	"loam/link/linktest"
	"loam/link/tap"
)

func TestMain(m *testing.M) { netns.Main(m) }

// needTun skips a test if interfaces cannot be created.
func needTun(t testing.TB) {
	t.Helper()
	netns.Need(t)
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	f.Close()
}

// maker returns a function that opens an interface, and a packet socket at the kernel's side of it.
// The socket also uses the virtio-net header, so the peer is a tap device itself.
func maker(c tap.Config, mtu int) linktest.Make {
	return func(t testing.TB) (a, b link.Device) {
		c := c
		if mtu != 0 { // must be set before the interface is opened
			c.Persist = true
			first, err := tap.Open(c)
			must(t, err)
			c.Name = first.Info().Name
			netns.Up(t, c.Name, mtu)
			must(t, first.Close())
		}
		d, err := tap.Open(c)
		must(t, err)
		netns.Up(t, d.Info().Name, 0)
		return d, packetSocket(t, d.Info())
	}
}

// packetSocket returns the other end of the interface.
func packetSocket(t testing.TB, info link.Info) link.Device {
	t.Helper()
	const (
		allProtocols     = 0x0300 // ETH_P_ALL in network byte order
		packetVnetHeader = 15     // PACKET_VNET_HDR
		rcvBufForce      = 33     // SO_RCVBUFFORCE
	)
	s, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	must(t, syscall.SetsockoptInt(s, syscall.SOL_SOCKET, rcvBufForce, 16<<20))
	must(t, syscall.SetsockoptInt(s, syscall.SOL_PACKET, packetVnetHeader, 1))
	must(t, syscall.Bind(s, &syscall.SockaddrLinklayer{Protocol: allProtocols, Ifindex: netns.Index(t, info.Name)}))
	info.Name += ".kernel"
	return fromFile(t, s, info)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	needTun(t)
	for name, c := range map[string]struct {
		config tap.Config
		mtu    int
	}{
		"tap":             {tap.Config{}, 0},
		"tun":             {tap.Config{Medium: link.IP}, 0},
		"jumbo":           {tap.Config{}, 9000},
		"without offload": {tap.Config{NoOffloads: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, maker(c.config, c.mtu), linktest.NeverShort, linktest.PeerUnseen)
		})
	}
}

// Descriptors inherited from a parent. A socket pair that preserves message boundaries is used
// instead of an interface: it needs no privilege, and it can become full.
func TestConformanceFromFiles(t *testing.T) {
	linktest.Run(t, func(t testing.TB) (a, b link.Device) {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
		must(t, err)
		info := link.Info{Name: "passed", MTU: 1500, Offloads: link.OffloadChecksum | link.OffloadTSO4}
		return fromFile(t, pair[0], info), fromFile(t, pair[1], info)
	})
}

func fromFile(t testing.TB, fd int, info link.Info) link.Device {
	t.Helper()
	d, err := tap.FromFiles([]*os.File{os.NewFile(uintptr(fd), info.Name)}, info)
	must(t, err)
	return d
}

func TestRefusals(t *testing.T) {
	needTun(t)
	d, err := tap.Open(tap.Config{Name: "loam0"})
	must(t, err)
	defer d.Close()
	for name, c := range map[string]struct {
		config tap.Config
		want   string
	}{
		"busy":       {tap.Config{Name: "loam0"}, "another process has it open"},
		"other mode": {tap.Config{Name: "loam0", Medium: link.IP}, "is not a tun interface"},
		"long name":  {tap.Config{Name: "loam567890123456"}, "longer than 15 bytes"},
		"queues":     {tap.Config{Name: "loam1", Queues: 257}, "Linux allows 256"},
	} {
		d, err := tap.Open(c.config)
		if err == nil {
			d.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), c.config.Name) && name != "long name" {
			t.Errorf("%s: %q does not say %q", name, err, c.want)
		}
	}
}
