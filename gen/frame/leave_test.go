package frame

import (
	"bytes"
	"errors"
	"testing"
)

// A frame with a left-out checksum becomes equal to the frame with a computed one. The device only has to sum up
// the bytes from start and write the complement.
func TestLeftChecksumsAreFinishedByAdding(t *testing.T) {
	for _, text := range []string{
		"eth; ip src=10.0.0.1-10.0.0.9 dst=random; udp sport=random dport=9",
		"eth; ip; tcp sport=1-1000 seq=random; payload text=odd",
		"eth; vlan id=1-9; ip6 src=2001:db8::/64 dst=fd00::2; udp sport=random",
		"eth; qinq; vlan; ip6; tcp flags=S",
		"eth; mpls; ip; udp",
	} {
		tpl, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		sizes, _ := ParseSizes("90-300")
		fillers := [2]*Filler{}
		for i := range fillers {
			p, err := Compile(tpl, Options{Sizes: sizes, Seed: 5, LeaveChecksum: i == 1})
			if err != nil {
				t.Fatal(text, err)
			}
			fillers[i] = p.Filler(0, 1)
		}
		start, offset, ok := fillers[1].Checksum()
		if _, _, whole := fillers[0].Checksum(); !ok || whole {
			t.Fatalf("%s: %v, %v", text, ok, whole)
		}
		want, got := make([]byte, 400), make([]byte, 400)
		for range 500 {
			n, m := fillers[0].Next(want), fillers[1].Next(got)
			finish(got[:m], start, offset)
			if !bytes.Equal(want[:n], got[:m]) {
				t.Fatalf("%s:\n% x, want\n% x", text, got[:m], want[:n])
			}
		}
	}
}

// finish completes a checksum like a device (virtio 1.3 section 5.1.6.2.1).
func finish(b []byte, start, offset int) {
	sum := uint32(0)
	for i, x := range b[start:] {
		sum += uint32(x) << (8 * (1 - i%2))
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	c := ^uint16(sum)
	if c == 0 {
		c = 0xffff // 0xffff has the same meaning as 0, and is allowed for both UDP and TCP
	}
	b[start+offset], b[start+offset+1] = byte(c>>8), byte(c)
}

// LeaveChecksum is an error if a template has no checksum that a device can compute, or more than one.
func TestNothingToLeave(t *testing.T) {
	for _, text := range []string{"eth; ip; icmp", "eth; ip; udp checksum=0", "eth; ip; udp; vxlan; eth; ip; udp", "eth; arp"} {
		tpl, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var wrong *Error
		if _, err := Compile(tpl, Options{LeaveChecksum: true}); !errors.As(err, &wrong) || wrong.Field != "template" {
			t.Errorf("%s: %v", text, err)
		}
	}
}
