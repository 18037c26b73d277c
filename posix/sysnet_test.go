package posix

import "testing"

// The files in /sys/class/net have the values of Linux. For the loopback interface they are equal.
func TestSysNet(t *testing.T) {
	p := process(t)
	files := SysNet("lo")
	for name, want := range map[string]string{
		"address": "00:00:00:00:00:00\n", "broadcast": "00:00:00:00:00:00\n", "addr_len": "6\n", "flags": "0x9\n",
		"operstate": "unknown\n", "type": "772\n", "ifindex": "1\n", "mtu": "65536\n", "uevent": "INTERFACE=lo\nIFINDEX=1\n",
	} {
		if got := files[name](p); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if files["speed"] != nil {
		t.Error("the loopback has a speed")
	}
	if got := files["statistics/tx_bytes"](p); got != "0\n" {
		t.Errorf("sent: %q", got)
	}
	if got := SysNet("eth7")["mtu"](p); got != "" {
		t.Errorf("an interface that is not there: %q", got)
	}
	if got := files["mtu"](New(Options{})); got != "" {
		t.Errorf("of no network: %q", got)
	}
}
