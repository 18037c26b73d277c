package user

import "encoding/binary"

// Layout of the standard format of XSAVE: SDM volume 1, 13.4. Offsets in bytes.
const (
	vectorControl = 0   // 2 bytes: the control word of the x87
	vectorMXCSR   = 24  // 4 bytes
	vectorXMM     = 160 // 16 registers of 16 bytes
	vectorHeader  = 512 // 64 bytes; the first 8 are the components that are not in their initial state
	vectorUpper   = 576 // upper halves of the AVX registers (the same offset on all processors: CPUID 0DH.2)

	componentSSE = 1 << 1
	componentAVX = 1 << 2

	initialControl = 0x37f
	initialMXCSR   = 0x1f80
	maskMXCSR      = 0xffff // bits that exist on all processors with XSAVE (SDM volume 1, 10.2.3)
)

// initVectors writes the initial state, as after execve(2), into zeroed memory.
func initVectors(b []byte) {
	binary.LittleEndian.PutUint16(b[vectorControl:], initialControl)
	binary.LittleEndian.PutUint32(b[vectorMXCSR:], initialMXCSR)
}

// cleanVectors clears state that makes XRSTOR fault: unknown components, the compacted format, reserved bits (SDM
// volume 1, 13.8.1). components are the components enabled in XCR0.
func cleanVectors(b []byte, components uint64) {
	le := binary.LittleEndian
	header := b[vectorHeader : vectorHeader+64]
	present := le.Uint64(header) & components
	clear(header)
	le.PutUint64(header, present)
	le.PutUint32(b[vectorMXCSR:], le.Uint32(b[vectorMXCSR:])&maskMXCSR)
}

// joinVectors stores registers that were saved by moves at their places in XSAVE's format.
func joinVectors(b []byte, wide *[16]wideRegister, mxcsr uint32) {
	le := binary.LittleEndian
	present := le.Uint64(b[vectorHeader:]) | componentSSE
	for i := range wide {
		copy(b[vectorXMM+16*i:], wide[i][:16])
		if len(b) > vectorUpper {
			present |= componentAVX
			copy(b[vectorUpper+16*i:], wide[i][16:])
		}
	}
	le.PutUint64(b[vectorHeader:], present)
	le.PutUint32(b[vectorMXCSR:], mxcsr)
}

// splitVectors is the reverse of joinVectors. A component that is not present is in its initial state, zero.
func splitVectors(b []byte, wide *[16]wideRegister) (mxcsr uint32) {
	le := binary.LittleEndian
	present := le.Uint64(b[vectorHeader:])
	clear(wide[:])
	for i := range wide {
		if present&componentSSE != 0 {
			copy(wide[i][:16], b[vectorXMM+16*i:])
		}
		if present&componentAVX != 0 && len(b) > vectorUpper {
			copy(wide[i][16:], b[vectorUpper+16*i:])
		}
	}
	return le.Uint32(b[vectorMXCSR:])
}
