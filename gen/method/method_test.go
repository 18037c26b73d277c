package method

import (
	"testing"

	"loam/wire"
)

// HeaderLen is the length that the headers have on the wire.
func TestHeaderLen(t *testing.T) {
	const udp4 = wire.EthernetLen + wire.IPv4MinLen + wire.UDPLen
	for layer, want := range map[Layer][2]int{Frame: {0, 0}, Packet: {14, 14}, Payload: {udp4, udp4 + 20}} {
		if got := [2]int{layer.HeaderLen(false), layer.HeaderLen(true)}; got != want {
			t.Errorf("%v: %v, want %v", layer, got, want)
		}
	}
}

func TestCountersAdd(t *testing.T) {
	one := Counters{1, 2, 3, 4, 5, 6, 7, 8}
	sum := one
	sum.Add(one)
	if want := (Counters{2, 4, 6, 8, 10, 12, 14, 16}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
}
