package procfs

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// CPUID executes the instruction CPUID.
type CPUID func(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

// CPUInfo returns the content of /proc/cpuinfo for a number of equal CPUs. Every CPU is its own core, and all are in one
// package. hertz is the frequency of the time-stamp counter. isolated means that the CPUs are vulnerable to Meltdown, and that
// page-table isolation is on.
func CPUInfo(cpus int, hertz uint64, isolated bool, cpuid CPUID) string {
	const mega = 1e6
	most, vendor := cpuid.vendor()
	family, model, stepping := cpuid.signature()
	virtual, physical := cpuid.addressBits()
	_, b, _, _ := cpuid(1, 0)
	line := b >> 8 & 0xff * 8 // size of a cache line in bytes
	name, flags := cpuid.brand(), strings.Join(cpuid.flags(), " ")
	mhz, bugs := float64(hertz)/mega, ""
	if isolated {
		flags, bugs = flags+" pti", " cpu_meltdown"
	}
	var text strings.Builder
	for i := range cpus {
		fmt.Fprintf(&text, "processor\t: %d\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: %s\nstepping\t: %d\n",
			i, vendor, family, model, name, stepping)
		fmt.Fprintf(&text, "cpu MHz\t\t: %.3f\nphysical id\t: 0\nsiblings\t: %d\ncore id\t\t: %d\ncpu cores\t: %[2]d\n", mhz, cpus, i)
		fmt.Fprintf(&text, "apicid\t\t: %d\ninitial apicid\t: %[1]d\nfpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: %d\nwp\t\t: yes\n", i, most)
		fmt.Fprintf(&text, "flags\t\t: %s\nbugs\t\t:%s\nbogomips\t: %.2f\n", flags, bugs, 2*mhz)
		fmt.Fprintf(&text, "clflush size\t: %d\ncache_alignment\t: %[1]d\naddress sizes\t: %d bits physical, %d bits virtual\npower management:\n\n",
			line, physical, virtual)
	}
	return text.String()
}

// vendor returns the highest basic leaf and the name of the manufacturer.
func (c CPUID) vendor() (most uint32, name string) {
	most, b, cx, d := c(0, 0)
	return most, characters(b, d, cx)
}

// brand returns the name of the processor.
func (c CPUID) brand() string {
	const first, last = 0x8000_0002, 0x8000_0004
	if most, _, _, _ := c(extended, 0); most < last {
		return "unknown"
	}
	var name string
	for leaf := uint32(first); leaf <= last; leaf++ {
		name += characters(c(leaf, 0))
	}
	return strings.TrimSpace(strings.TrimRight(name, "\x00"))
}

// characters returns the bytes of registers as a string.
func characters(registers ...uint32) string {
	var b []byte
	for _, r := range registers {
		b = binary.LittleEndian.AppendUint32(b, r)
	}
	return string(b)
}

// signature returns family, model and stepping: SDM volume 2, "CPUID", figure 3-6.
func (c CPUID) signature() (family, model, stepping uint32) {
	a, _, _, _ := c(1, 0)
	const extendedFamily, firstWithExtendedModel = 0xf, 6
	family, model, stepping = a>>8&0xf, a>>4&0xf, a&0xf
	if family == extendedFamily {
		family += a >> 20 & 0xff
	}
	if family >= firstWithExtendedModel {
		model |= a >> 16 & 0xf << 4
	}
	return family, model, stepping
}

// addressBits returns the number of bits in virtual and physical addresses.
func (c CPUID) addressBits() (virtual, physical uint32) {
	const leaf = 0x8000_0008
	if most, _, _, _ := c(extended, 0); most < leaf {
		return 48, 36
	}
	a, _, _, _ := c(leaf, 0)
	return a >> 8 & 0xff, a & 0xff
}

// extended is the first extended leaf. Its EAX is the highest extended leaf.
const extended = 0x8000_0000

// flagNames are Linux's names of the bits of CPUID, by register: the lowest bit first. "-" stands for a bit that has no
// name or that Loam does not support.
var flagNames = []struct {
	leaf, sub uint32
	register  int // 0 is EAX
	names     string
}{
	{1, 0, 3, "fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov pat pse36 pn clflush - dts acpi mmx fxsr sse sse2 ss ht tm ia64 pbe"},
	{extended + 1, 0, 3, "- - - - - - - - - - - syscall - - - - - - - mp nx - mmxext - - fxsr_opt pdpe1gb rdtscp - lm 3dnowext 3dnow"},
	{1, 0, 2, "pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cid sdbg fma cx16 xtpr pdcm - pcid dca sse4_1 sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave - avx f16c rdrand hypervisor"},
	{extended + 1, 0, 2, "lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw ibs xop skinit wdt - lwp fma4 tce - nodeid_msr - tbm topoext perfctr_core perfctr_nb - bpext ptsc perfctr_llc mwaitx"},
	{7, 0, 1, "fsgsbase tsc_adjust - bmi1 hle avx2 - smep bmi2 erms invpcid rtm cqm - - rdt_a avx512f avx512dq rdseed adx smap avx512ifma - clflushopt clwb intel_pt avx512pf avx512er avx512cd sha_ni avx512bw avx512vl"},
	{0xd, 1, 0, "xsaveopt xsavec xgetbv1 xsaves"},
	{7, 1, 0, "- - - - avx_vnni avx512_bf16"},
	{extended + 8, 0, 1, "clzero irperf xsaveerptr - rdpru - - - - wbnoinvd"},
	{7, 0, 2, "- avx512vbmi umip - - waitpkg avx512_vbmi2 - gfni vaes vpclmulqdq avx512_vnni avx512_bitalg tme avx512_vpopcntdq - - - - - - - rdpid - - cldemote - movdiri movdir64b"},
	{7, 0, 3, "- - avx512_4vnniw avx512_4fmaps fsrm - - - avx512_vp2intersect - md_clear - - - serialize - tsxldtrk - pconfig arch_lbr - - - avx512_fp16"},
}

// flags returns the names of the features that the processor has. A leaf beyond the highest one has no features.
func (c CPUID) flags() []string {
	var flags []string
	for _, row := range flagNames {
		if most, _, _, _ := c(row.leaf&extended, 0); row.leaf > most {
			continue
		}
		a, b, cx, d := c(row.leaf, row.sub)
		bits := [...]uint32{a, b, cx, d}[row.register]
		for i, name := range strings.Fields(row.names) {
			if bits>>i&1 != 0 && name != "-" {
				flags = append(flags, name)
			}
		}
	}
	return flags
}
