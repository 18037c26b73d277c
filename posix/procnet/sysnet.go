package procnet

import (
	"fmt"

	"loam/abi/linux"
	"loam/link"
	"loam/posix/netdevice"
	"loam/stack"
	"loam/wire"
)

// The files of an interface in /sys/class/net, as described in Linux's Documentation/ABI/testing/ sysfs-class-net and
// sysfs-class-net-statistics. Properties that the stack does not have are 0. Files whose read fails on Linux are missing.

// SysNet returns the files of an interface, as a map from the path below the interface's directory to a
// function that generates the content. The content is empty if the interface does not exist.
func SysNet(name string) map[string]func(*View) string {
	files := map[string]func(*View) string{}
	for path, text := range interfaceFiles {
		if name == loopback && (path == "speed" || path == "duplex") {
			continue // reading this file fails with EINVAL on Linux
		}
		files[path] = func(p *View) string {
			if i := netdevice.Named(p.Net, name); i != nil {
				return text(i) + "\n"
			}
			return ""
		}
	}
	return files
}

const loopback = "lo"

var interfaceFiles = map[string]func(*stack.Interface) string{
	"address": func(i *stack.Interface) string { return station(i, i.MAC()) },
	"broadcast": func(i *stack.Interface) string {
		if i.IsLoopback() {
			return station(i, wire.MAC{})
		}
		return station(i, wire.Broadcast)
	},
	"addr_len": func(i *stack.Interface) string {
		if station(i, i.MAC()) == "" {
			return "0"
		}
		return fmt.Sprint(len(i.MAC()))
	},
	"flags": func(i *stack.Interface) string {
		_, flags := netdevice.Kind(i)
		return fmt.Sprintf("%#x", flags&^(linux.IFF_RUNNING|linux.IFF_LOWER_UP))
	},
	"operstate": func(i *stack.Interface) string {
		if i.IsLoopback() {
			return "unknown"
		}
		return "up"
	},
	"type": func(i *stack.Interface) string {
		kind, _ := netdevice.Kind(i)
		return fmt.Sprint(kind)
	},
	"uevent":  func(i *stack.Interface) string { return fmt.Sprintf("INTERFACE=%s\nIFINDEX=%d", i.Name(), i.Index()) },
	"mtu":     func(i *stack.Interface) string { return fmt.Sprint(i.MTU()) },
	"ifindex": func(i *stack.Interface) string { return fmt.Sprint(i.Index()) },
	"iflink":  func(i *stack.Interface) string { return fmt.Sprint(i.Index()) },

	"carrier": always("1"), "dormant": always("0"), "duplex": always("unknown"), "speed": always("-1"),
	"tx_queue_len": always("1000"), "ifalias": always(""), "link_mode": always("0"), "netdev_group": always("0"),
	"proto_down": always("0"), "dev_id": always("0x0"), "dev_port": always("0"), "addr_assign_type": always("0"),
	"carrier_changes": always("0"), "carrier_up_count": always("0"), "carrier_down_count": always("0"), "gro_flush_timeout": always("0"),

	"statistics/rx_bytes":   counted(func(s link.Stats) uint64 { return s.RxBytes }),
	"statistics/rx_packets": counted(func(s link.Stats) uint64 { return s.RxFrames }),
	"statistics/rx_errors":  counted(func(s link.Stats) uint64 { return s.RxErrors }),
	"statistics/rx_dropped": counted(func(s link.Stats) uint64 { return s.RxDropped }),
	"statistics/tx_bytes":   counted(func(s link.Stats) uint64 { return s.TxBytes }),
	"statistics/tx_packets": counted(func(s link.Stats) uint64 { return s.TxFrames }),
	"statistics/tx_errors":  counted(func(s link.Stats) uint64 { return s.TxErrors }),
	"statistics/tx_dropped": counted(func(s link.Stats) uint64 { return s.TxDropped }),
	"statistics/multicast":  always("0"), "statistics/collisions": always("0"),
	"statistics/rx_length_errors": always("0"), "statistics/rx_over_errors": always("0"), "statistics/rx_crc_errors": always("0"),
	"statistics/rx_frame_errors": always("0"), "statistics/rx_fifo_errors": always("0"), "statistics/rx_missed_errors": always("0"),
	"statistics/rx_compressed": always("0"), "statistics/rx_nohandler": always("0"),
	"statistics/tx_aborted_errors": always("0"), "statistics/tx_carrier_errors": always("0"), "statistics/tx_fifo_errors": always("0"),
	"statistics/tx_heartbeat_errors": always("0"), "statistics/tx_window_errors": always("0"), "statistics/tx_compressed": always("0"),
}

func always(text string) func(*stack.Interface) string {
	return func(*stack.Interface) string { return text }
}

// station formats a link-layer address. It returns "" if the interface has none.
func station(i *stack.Interface, mac wire.MAC) string {
	if kind, _ := netdevice.Kind(i); kind == linux.ARPHRD_NONE {
		return ""
	}
	return mac.String()
}

func counted(number func(link.Stats) uint64) func(*stack.Interface) string {
	return func(i *stack.Interface) string { return fmt.Sprint(number(i.Device().Stats())) }
}
