//go:build linux

package interop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loam/link"
	"loam/link/unixsock"
	"loam/usernet"
)

// iPXE is a boot loader with DHCP, DNS, TCP and HTTP implementations that share nothing with Linux's or
// Loam's. Its frames leave QEMU by a Unix socket, which leads to a device of Loam and a gateway:
//
//	iPXE ── virtio ── QEMU ── Unix socket ── link/unixsock ── usernet ── a web server on 127.0.0.1
//
// Its commands are on its command line, because its console loses keys that are typed too fast.

// TestIPXE checks with both of QEMU's framings that iPXE gets its address from the gateway, resolves
// the gateway's name, and downloads a script and a large file. iPXE would stop the script at a damaged
// line.
func TestIPXE(t *testing.T) {
	for name, framing := range map[string]unixsock.Framing{"stream": unixsock.Stream, "dgram": unixsock.Datagram} {
		t.Run(name, func(t *testing.T) {
			l, _ := openLab(t)
			l.ip("link", "set", "lo", "up")
			web := serveBoot(t)
			// Only DHCP: with IPv6, iPXE would wait for a router.
			machine, device := l.startIPXE(framing, fmt.Sprintf(
				"ifconf --configurator dhcp && route && chain http://host.loam.internal:%d/script", web.Port()))
			gateway, err := usernet.New(usernet.Config{Device: device, HostLoopback: true})
			l.must(err)
			l.Cleanup(func() {
				l.must(gateway.Close())
				if n := link.Outstanding(); n != 0 {
					l.Errorf("%d frames left behind", n)
				}
			})
			machine.awaitOutput("net0: 10.0.2.15/255.255.255.0 gw 10.0.2.2")
			machine.awaitOutput("the script has ended at 10.0.2.15")
			machine.awaitOutput(fmt.Sprintf("file : %d bytes", bootFile))
			if s := device.Stats(); s.RxErrors != 0 || s.TxErrors != 0 {
				t.Errorf("the device counts errors: %+v", s)
			}
		})
	}
}

// bootFile is the size of the large file in bytes. It must fit into the machine's memory.
const bootFile = 4 << 20

// serveBoot serves the files for iPXE, and returns the address.
func serveBoot(t *testing.T) netip.AddrPort {
	var script strings.Builder
	script.WriteString("#!ipxe\n")
	for i := range 2000 {
		fmt.Fprintf(&script, "iseq %06d %06d || goto wrong\n", i, i)
	}
	script.WriteString("imgfetch file && imgstat file && echo the script has ended at ${net0/ip}\n" +
		"exit\n" +
		":wrong\n" +
		"echo something is wrong with the script\n")
	var mux http.ServeMux
	mux.HandleFunc("GET /script", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, script.String()) })
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(bootFile))
		sendStream(w, bootFile)
	})
	server := httptest.NewServer(&mux)
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

// startIPXE starts a machine with iPXE that runs command. It returns the machine and the other end of
// its wire.
func (l *lab) startIPXE(framing unixsock.Framing, command string) (*service, *unixsock.Device) {
	l.Helper()
	kernel, dir := l.findIPXE(), l.TempDir()
	theirs, ours := filepath.Join(dir, "qemu"), filepath.Join(dir, "loam")
	boot := func(netdev string) *service {
		return l.start("qemu-system-x86_64", "-accel", "tcg", "-m", "64", "-machine", "pc,graphics=off", // graphics off: the console is the serial port
			"-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
			"-netdev", netdev+",id=wire", "-device", "virtio-net-pci,netdev=wire,romfile=", "-kernel", kernel, "-append", command)
	}
	if framing == unixsock.Datagram {
		device, err := unixsock.OpenDatagram(ours, theirs, unixsock.Config{})
		l.must(err)
		return boot("dgram,local.type=unix,local.path=" + theirs + ",remote.type=unix,remote.path=" + ours), device
	}
	listener, err := unixsock.Listen(ours, unixsock.Config{})
	l.must(err)
	defer listener.Close()
	defer context.AfterFunc(l.ctx, func() { listener.Close() })()
	machine := boot("stream,addr.type=unix,addr.path=" + ours)
	device, err := listener.Accept()
	l.must(err)
	return machine, device
}

// findIPXE returns the path of iPXE, where its package or internal/ci puts it.
func (l *lab) findIPXE() string {
	l.Helper()
	cache, err := os.UserCacheDir()
	l.must(err)
	for _, root := range []string{"/", filepath.Join(cache, "loam-ci")} {
		file := filepath.Join(root, "boot/ipxe.lkrn")
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	l.Skip("needs iPXE: go run ./internal/ci packages")
	return ""
}
