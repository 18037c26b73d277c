package amd64

// Information that hypervisors provide by CPUID: Linux, Documentation/virt/kvm/x86/cpuid.rst. The leaf with frequencies
// was defined by VMware and adopted by other hypervisors.

const (
	hypervisorLeaf  = 0x4000_0000
	featuresLeaf    = 0x4000_0001
	frequenciesLeaf = 0x4000_0010
)

// hypervisorMost returns the largest CPUID leaf that the hypervisor supports, or 0 without a hypervisor. kvm reports
// whether the hypervisor is KVM.
func hypervisorMost() (most uint32, kvm bool) {
	const present = 1 << 31
	if _, _, c, _ := CPUID(1, 0); c&present == 0 {
		return 0, false
	}
	most, b, c, d := CPUID(hypervisorLeaf, 0)
	return most, b == 0x4b4d564b && c == 0x564b4d56 && d == 0x4d // "KVMKVMKVM"
}

// Emulated reports whether QEMU emulates the processor in software (TCG).
func Emulated() bool {
	const present = 1 << 31
	if _, _, c, _ := CPUID(1, 0); c&present == 0 {
		return false
	}
	_, b, c, d := CPUID(hypervisorLeaf, 0)
	return b == 0x54474354 && c == 0x43544743 && d == 0x47435447 // "TCGTCGTCGTCG"
}

// HypervisorFeatures returns the feature bits of KVM; 0 under any other hypervisor.
func HypervisorFeatures() uint32 {
	if most, kvm := hypervisorMost(); kvm && most >= featuresLeaf {
		features, _, _, _ := CPUID(featuresLeaf, 0)
		return features
	}
	return 0
}

// CounterFrequency returns the frequency of the time stamp counter in Hz, as the hypervisor or the processor
// reports it; 0 if neither does. SDM volume 2, CPUID, leaf 15H.
func CounterFrequency() uint64 {
	if most, _ := hypervisorMost(); most >= frequenciesLeaf && most < hypervisorLeaf+0x100 {
		if khz, _, _, _ := CPUID(frequenciesLeaf, 0); khz != 0 {
			return uint64(khz) * 1000
		}
	}
	const crystalLeaf = 0x15
	if most, _, _, _ := CPUID(0, 0); most < crystalLeaf {
		return 0
	}
	den, num, crystal, _ := CPUID(crystalLeaf, 0)
	return crystalFrequency(den, num, crystal)
}

// crystalFrequency returns the frequency of a counter that runs at num/den times the frequency of a crystal, in Hz; 0
// if one of the numbers is 0, which means unknown.
func crystalFrequency(den, num, crystal uint32) uint64 {
	if den == 0 {
		return 0
	}
	return uint64(crystal) * uint64(num) / uint64(den)
}
