package procfs

import (
	"strings"
	"testing"
)

// anyCPU returns the registers of a processor with few features: leaves 0, 1, 7, 0x80000000 to 0x80000004 and 0x80000008.
func anyCPU(leaf, sub uint32) (a, b, c, d uint32) {
	word := func(s string) uint32 { return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24 }
	switch leaf {
	case 0:
		return 7, word("Genu"), word("ntel"), word("ineI")
	case 1: // family 15 + 11, model 1<<4 + 2, stepping 1; lines of 8 * 8 bytes; ssse3, osxsave and avx; fpu and sse2
		return 0x00b1_0f21, 0x0000_0800, 1<<9 | 1<<27 | 1<<28, 1 | 1<<26
	case 7:
		return 0, 1<<5 | 1<<14 | 1<<29, 1<<3 | 1<<29, 1 << 4 // avx2, sha_ni, fsrm; mpx, pku and enqcmd, which Loam does not support
	case extended:
		return extended + 8, 0, 0, 0
	case extended + 1:
		return 0, 0, 1, 1 << 29 // lahf_lm; lm
	case extended + 2:
		return word("  A "), word("proc"), word("esso"), word("r\x00\x00\x00")
	case extended + 8:
		return 48<<8 | 40, 1<<4 | 1<<9, 0, 0 // rdpru, wbnoinvd
	}
	return 0, 0, 0, 0
}

// The file has the keys of Linux's file, except for the keys of features that Loam lacks, and the values that CPUID returns.
func TestCPUInfo(t *testing.T) {
	text := CPUInfo(2, 2_500_000_000, false, anyCPU)
	for _, want := range []string{
		"processor\t: 1\nvendor_id\t: GenuineIntel\ncpu family\t: 26\nmodel\t\t: 18\nmodel name\t: A processor\nstepping\t: 1\n",
		"cpu MHz\t\t: 2500.000\n", "siblings\t: 2\n", "core id\t\t: 1\n", "cpuid level\t: 7\n", "bogomips\t: 5000.00\n", "clflush size\t: 64\n",
		"address sizes\t: 40 bits physical, 48 bits virtual\n", "flags\t\t: fpu sse2 lm ssse3 avx lahf_lm avx2 sha_ni rdpru wbnoinvd fsrm\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}

// A processor without extended leaves has no name, and the smallest addresses.
func TestCPUInfoOfOldProcessor(t *testing.T) {
	text := CPUInfo(1, 1_000_000, false, func(leaf, sub uint32) (a, b, c, d uint32) {
		if leaf >= extended {
			return 0, 0, 0, 0
		}
		return anyCPU(leaf, sub)
	})
	for _, want := range []string{"model name\t: unknown\n", "address sizes\t: 36 bits physical, 48 bits virtual\n", "flags\t\t: fpu sse2 ssse3 avx avx2 sha_ni fsrm\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}

// A processor that is vulnerable to Meltdown has the names that Linux uses for the bug and for its mitigation.
func TestCPUInfoMeltdown(t *testing.T) {
	text := CPUInfo(1, 1_000_000, true, anyCPU)
	for _, want := range []string{"\nbugs\t\t: cpu_meltdown\n", " pti\nbugs"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
