package amd64

import (
	"encoding/hex"
	"testing"
)

// The bytes encode the intended instructions (SDM volume 2) and end before the descriptors.
func TestStartupCode(t *testing.T) {
	var b [StartupSize]byte
	StartupCode(b[:], 0x8000, 0x123000, true, 0xffffffff80201000, 0x1122334455667788)
	const want = "fafc8cc88ed8660f01167800" + "0f20e06683c8200f22e0" + "66b800301200" + "0f22d8" +
		"66b9800000c0" + "0f32" + "660d00090000" + "0f30" + "0f20c0" + "660d01000080" + "0f22c0" +
		"66ea438000000800" + "48b800102080ffffffff" + "48bb8877665544332211" + "ffe0"
	if got := hex.EncodeToString(b[:len(want)/2]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
