package machine

import (
	"errors"
	"syscall"
)

// Probes of the links that carry frames.

// tap checks for the device file, and for CAP_NET_ADMIN. Without that capability, root must have
// created a tap device for this user (tuntap.rst, "Configuration").
func tap(h *Host) Finding {
	const device = "/dev/net/tun"
	f := Finding{Area: "link", Name: "tap", State: Missing}
	switch err := h.OpenDevice(device); {
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENODEV):
		f.Detail = device + " is not there"
		f.Remedy = "load the module as root, modprobe tun, or let the container have the device"
	case err != nil:
		f.Detail = device + " does not open: " + err.Error()
		f.Remedy = "let your user open it, as root: chmod 0666 " + device
	case h.has(capNetAdmin):
		f.State = OK
		f.Detail = device + " opens, and this process may make devices (CAP_NET_ADMIN)"
	default:
		f.Detail = device + " opens, but this process may not make devices (CAP_NET_ADMIN)"
		f.Remedy = "make one as root for your user, ip tuntap add dev loam0 mode tap user NAME, and use --net tap:loam0"
	}
	return f
}

func packetSocket(h *Host) Finding {
	f := Finding{Area: "link", Name: "af_packet", State: OK, Planned: true, Detail: "packet(7) sockets can be made"}
	if err := h.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0); err != nil {
		f.State = Missing
		f.Detail = "packet(7) sockets: " + err.Error()
		f.Remedy = "run as root, or with CAP_NET_RAW"
	}
	return f
}

// afXDP is AF_XDP of linux/socket.h, which package syscall lacks.
const afXDP = 44

func xdpSocket(h *Host) Finding {
	f := Finding{Area: "link", Name: "af_xdp", State: OK, Planned: true, Detail: "AF_XDP sockets can be made"}
	err := h.Socket(afXDP, syscall.SOCK_RAW, 0)
	if err == nil {
		return f
	}
	f.State = Missing
	f.Detail = "AF_XDP sockets: " + err.Error()
	f.Remedy = "run as root, or with CAP_NET_RAW"
	if errors.Is(err, syscall.EAFNOSUPPORT) {
		f.Remedy = "use a kernel that is built with CONFIG_XDP_SOCKETS"
	}
	return f
}
