package amd64

// Vulnerability to Meltdown (CVE-2017-5754): a program in ring 3 can read memory that its page tables map for ring 0 only.

// Vendors, as the registers EBX, EDX and ECX of CPUID leaf 0.
var (
	vendorIntel   = [3]uint32{0x756e_6547, 0x4965_6e69, 0x6c65_746e} // GenuineIntel
	vendorAMD     = [3]uint32{0x6874_7541, 0x6974_6e65, 0x444d_4163} // AuthenticAMD
	vendorHygon   = [3]uint32{0x6f67_7948, 0x6e65_476e, 0x656e_6975} // HygonGenuine
	vendorCentaur = [3]uint32{0x746e_6543, 0x4872_7561, 0x736c_7561} // CentaurHauls
)

// capabilityRDCLNo is a bit of IA32_ARCH_CAPABILITIES: the processor is not vulnerable to Meltdown (SDM volume 4, 2.1).
const capabilityRDCLNo = 1 << 0

// isMeltdown reports whether a processor is vulnerable to Meltdown: its vendor, its family and model as CPUID reports them,
// and its register IA32_ARCH_CAPABILITIES, or 0. An unknown processor is vulnerable. The rules are Linux's (function
// cpu_set_bug_bits).
func isMeltdown(vendor [3]uint32, family, model uint32, capabilities uint64) bool {
	switch {
	case capabilities&capabilityRDCLNo != 0, vendor == vendorAMD, vendor == vendorHygon, family == 4:
		return false
	case vendor == vendorCentaur || vendor == vendorIntel:
		return family != 5 && !(vendor == vendorIntel && family == 6 && executesInOrder(model))
	}
	return true
}

// executesInOrder reports whether a model of Intel's family 6 is an Atom without speculative execution.
func executesInOrder(model uint32) bool {
	switch model {
	case 0x1c, 0x26, 0x27, 0x35, 0x36: // Bonnell and Saltwell
		return true
	}
	return false
}

// familyAndModel decodes EAX of CPUID leaf 1: SDM volume 2, CPUID, figure 3-6.
func familyAndModel(signature uint32) (family, model uint32) {
	family, model = signature>>8&0xf, signature>>4&0xf
	extended := family == 6 || family == 0xf
	if family == 0xf {
		family += signature >> 20 & 0xff
	}
	if extended {
		model |= signature >> 16 & 0xf << 4
	}
	return family, model
}

// readMeltdown reports whether this processor is vulnerable to Meltdown.
func readMeltdown() bool {
	most, b, c, d := CPUID(0, 0)
	vendor := [3]uint32{b, d, c}
	signature, _, _, _ := CPUID(1, 0)
	family, model := familyAndModel(signature)
	var capabilities uint64
	if most >= 7 {
		if _, _, _, d := CPUID(7, 0); d>>29&1 != 0 {
			capabilities = ReadMSR(MSRArchCapabilities)
		}
	}
	return isMeltdown(vendor, family, model, capabilities)
}
