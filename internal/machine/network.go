package machine

import (
	"fmt"
	"strings"
	"syscall"
)

// Probes of what the gateway of package usernet, which runs without privilege, may do on the host.

// ping tries the socket that sends echo requests without privilege (icmp(7)). Without it, pings from a
// guest to the outside are not answered.
func ping(h *Host) Finding {
	const file = "proc/sys/net/ipv4/ping_group_range"
	f := Finding{Area: "network", Name: "ping", State: OK, Detail: "echo sockets can be made"}
	if err := h.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP); err != nil {
		f.State = Missing
		f.Detail = "echo sockets: " + err.Error()
		if groups := strings.Fields(h.setting(file)); len(groups) == 2 {
			f.Detail += fmt.Sprintf(" (net.ipv4.ping_group_range is %s to %s)", groups[0], groups[1])
		}
		f.Remedy = `allow them to every group, as root: sysctl -w net.ipv4.ping_group_range="0 2147483647"`
	}
	return f
}

// lowPorts finds the lowest port that may be published (ip-sysctl.rst, ip_unprivileged_port_start).
func lowPorts(h *Host) Finding {
	f := Finding{Area: "network", Name: "low ports", State: OK}
	first, ok := h.number("proc/sys/net/ipv4/ip_unprivileged_port_start")
	if !ok {
		first = 1024
	}
	switch {
	case h.has(capNetBindService):
		f.Detail = "ports from 1 up may be published (CAP_NET_BIND_SERVICE)"
	case first <= 1:
		f.Detail = "ports from 1 up may be published"
	default:
		f.State = Missing
		f.Detail = fmt.Sprintf("only ports from %d up may be published", first)
		f.Remedy = "publish a higher port, -p 8080:80, or as root: sysctl -w net.ipv4.ip_unprivileged_port_start=80"
	}
	return f
}

// userNamespaces checks for user namespaces, which allow an ordinary user a network namespace with tap
// devices (user_namespaces(7)).
func userNamespaces(h *Host) Finding {
	f := Finding{Area: "network", Name: "user namespaces", State: OK, Detail: "can be entered, with a network of their own"}
	err := h.UserNamespace()
	if err == nil {
		return f
	}
	f.State = Missing
	f.Detail = "cannot be entered: " + err.Error()
	f.Remedy = "as root: " + forbiddenBy(h)
	return f
}

// forbiddenBy returns the command that would allow user namespaces, for the setting that most likely
// forbids them.
func forbiddenBy(h *Host) string {
	if n, ok := h.number("proc/sys/kernel/apparmor_restrict_unprivileged_userns"); ok && n != 0 {
		return "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	}
	if n, ok := h.number("proc/sys/kernel/unprivileged_userns_clone"); ok && n == 0 {
		return "sysctl -w kernel.unprivileged_userns_clone=1"
	}
	return "sysctl -w user.max_user_namespaces=15000"
}
