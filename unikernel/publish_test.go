package unikernel

import (
	"net/netip"
	"syscall"
	"testing"

	"loam/usernet"
)

// The error for a port that cannot be published contains the address and advice.
func TestPublishError(t *testing.T) {
	at := netip.MustParseAddrPort
	for _, c := range []struct {
		proto, host, free string
		err               error
		want              string
	}{
		{"tcp", "[::1]:8080", "127.0.0.1:8080", syscall.EADDRINUSE, "[::1]:8080 of the host is taken (tcp), and 127.0.0.1:8080 is free: " +
			"end the program that has it, use another port, or publish there alone: -p 127.0.0.1:8080:80"},
		{"udp", "127.0.0.1:53", "[::1]:53", syscall.EADDRINUSE, "127.0.0.1:53 of the host is taken (udp), and [::1]:53 is free: " +
			"end the program that has it, use another port, or publish there alone: -p [::1]:53:80/udp"},
		{"tcp", "0.0.0.0:8080", "", syscall.EADDRINUSE, "0.0.0.0:8080 of the host is taken (tcp): end the program that has it, or use another port"},
		{"tcp", "127.0.0.1:80", "", syscall.EACCES, "127.0.0.1:80 of the host cannot be had: permission denied: use a port from 1024 on, or be root"},
		{"tcp", "192.0.2.1:80", "", syscall.EADDRNOTAVAIL, "192.0.2.1:80 of the host cannot be had: cannot assign requested address: use another address or port"},
	} {
		e := &usernet.ForwardError{Err: c.err, Forward: usernet.Forward{Proto: c.proto, Host: at(c.host), Guest: at("10.0.2.15:80")}}
		if c.free != "" {
			e.Free = at(c.free)
		}
		if got := publishError(e).Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
