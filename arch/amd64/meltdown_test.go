package amd64

import (
	"encoding/binary"
	"testing"
)

// The decision agrees with Linux's for processors of each kind.
func TestMeltdown(t *testing.T) {
	for _, c := range []struct {
		name, vendor string
		signature    uint32
		capabilities uint64
		want         bool
	}{
		{"Skylake", "GenuineIntel", 0x506e3, 0, true},
		{"Skylake with other capabilities", "GenuineIntel", 0x506e3, 1<<64 - 2, true},
		{"Broadwell", "GenuineIntel", 0x306d4, 0, true},
		{"Silvermont", "GenuineIntel", 0x30678, 0, true},
		{"Goldmont without capabilities", "GenuineIntel", 0x506c9, 0, true},
		{"Cascade Lake", "GenuineIntel", 0x50657, 1, false},
		{"Sapphire Rapids", "GenuineIntel", 0x806f8, 0x1b, false},
		{"Pentium 4", "GenuineIntel", 0xf43, 0, true},
		{"QEMU's max with Intel's name", "GenuineIntel", 0x60fb1, 0, true},
		{"Pentium", "GenuineIntel", 0x543, 0, false},
		{"486", "GenuineIntel", 0x480, 0, false},
		{"Bonnell", "GenuineIntel", 0x106c2, 0, false},
		{"Bonnell of phones", "GenuineIntel", 0x20661, 0, false},
		{"Saltwell", "GenuineIntel", 0x30661, 0, false},
		{"Saltwell of tablets", "GenuineIntel", 0x30651, 0, false},
		{"Saltwell of phones", "GenuineIntel", 0x20671, 0, false},
		{"K8", "AuthenticAMD", 0xf48, 0, false},
		{"Zen 3", "AuthenticAMD", 0xa20f10, 0, false},
		{"AMD with the model of an Intel", "AuthenticAMD", 0x506e3, 0, false},
		{"Dhyana", "HygonGenuine", 0x900f02, 0, false},
		{"VIA of family 5", "CentaurHauls", 0x585, 0, false},
		{"VIA of family 6", "CentaurHauls", 0x6f2, 0, true},
		{"Zhaoxin", "  Shanghai  ", 0x706b0, 0, true},
		{"Zhaoxin that reports its state", "  Shanghai  ", 0x706b0, 1, false},
		{"another vendor", "TransmetaCPU", 0x623, 0, true},
	} {
		var vendor [3]uint32
		for i := range vendor {
			vendor[i] = binary.LittleEndian.Uint32([]byte(c.vendor[4*i:]))
		}
		family, model := familyAndModel(c.signature)
		if got := isMeltdown(vendor, family, model, c.capabilities); got != c.want {
			t.Errorf("%s (family %d, model %#x): %v", c.name, family, model, got)
		}
	}
}

// Family and model include their extensions only in the families that have them.
func TestFamilyAndModel(t *testing.T) {
	for signature, want := range map[uint32][2]uint32{
		0x506e3:  {6, 0x5e},
		0xa20f10: {0x19, 0x21},
		0xf43:    {0xf, 4},
		0x10543:  {5, 4},
	} {
		if family, model := familyAndModel(signature); family != want[0] || model != want[1] {
			t.Errorf("%#x: %#x, %#x", signature, family, model)
		}
	}
}
